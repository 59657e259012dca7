-- What the catalog sold in a quarter by zip code, into some places or at high prices.
SELECT ca_zip, sum(cs_sales_price)
FROM catalog_sales
  JOIN date_dim ON d_date_sk = cs_sold_date_sk
  JOIN customer ON c_customer_sk = cs_bill_customer_sk
  JOIN customer_address ON ca_address_sk = c_current_addr_sk
WHERE d_year = 2000 AND d_qoy = 1
  AND (cs_sales_price > 50 OR ca_state IN ('CA', 'GA', 'WA')
    OR substr(ca_zip, 1, 5) IN (
      '80348', '81792', '83405', '85392', '85460', '85669', '86197', '86475', '88274'))
GROUP BY ca_zip
ORDER BY ca_zip, sum(cs_sales_price)
LIMIT 100
