-- Web sales of a quarter by zip code and city, into some zip codes or of some items.
SELECT ca_zip, ca_city, sum(ws_sales_price)
FROM web_sales
  JOIN date_dim ON d_date_sk = ws_sold_date_sk
  JOIN item ON i_item_sk = ws_item_sk
  JOIN customer ON c_customer_sk = ws_bill_customer_sk
  JOIN customer_address ON ca_address_sk = c_current_addr_sk
WHERE d_year = 2000 AND d_qoy = 1
  AND (i_item_id IN (SELECT i_item_id FROM item WHERE i_item_sk IN (2, 3, 5, 7, 11, 13, 17, 19, 23, 29))
    OR substr(ca_zip, 1, 5) IN (
      '80348', '81792', '83405', '85392', '85460', '85669', '86197', '86475', '88274'))
GROUP BY ca_city, ca_zip
ORDER BY ca_zip, ca_city, sum(ws_sales_price)
LIMIT 100
