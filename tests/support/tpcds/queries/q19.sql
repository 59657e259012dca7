-- Brands of one manager by what stores sold of them in a November to customers from another zip code.
SELECT i_brand_id AS brand_id, i_brand AS brand, i_manufact_id, i_manufact,
  sum(ss_ext_sales_price) AS ext_price
FROM store_sales
  JOIN item ON i_item_sk = ss_item_sk
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
  JOIN customer ON c_customer_sk = ss_customer_sk
  JOIN customer_address ON ca_address_sk = c_current_addr_sk
  JOIN store ON s_store_sk = ss_store_sk AND substr(s_zip, 1, 5) <> substr(ca_zip, 1, 5)
WHERE d_year = 2000 AND d_moy = 11 AND i_manager_id = 8
GROUP BY i_manufact_id, i_manufact, i_brand_id, i_brand
ORDER BY ext_price DESC, brand, brand_id, i_manufact_id, i_manufact
LIMIT 100
