-- What all channels together sold in November 2000 of each item of the category of music.
WITH in_stores AS (
    SELECT i_item_id, sum(ss_ext_sales_price) AS sold
    FROM store_sales
      JOIN item ON i_item_sk = ss_item_sk
      JOIN customer_address ON ca_address_sk = ss_addr_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE ca_gmt_offset = -5 AND d_moy = 11 AND d_year = 2000
      AND i_item_id IN (SELECT i_item_id FROM item WHERE i_category IN ('Music'))
    GROUP BY i_item_id),
  by_catalog AS (
    SELECT i_item_id, sum(cs_ext_sales_price) AS sold
    FROM catalog_sales
      JOIN item ON i_item_sk = cs_item_sk
      JOIN customer_address ON ca_address_sk = cs_bill_addr_sk
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
    WHERE ca_gmt_offset = -5 AND d_moy = 11 AND d_year = 2000
      AND i_item_id IN (SELECT i_item_id FROM item WHERE i_category IN ('Music'))
    GROUP BY i_item_id),
  on_web AS (
    SELECT i_item_id, sum(ws_ext_sales_price) AS sold
    FROM web_sales
      JOIN item ON i_item_sk = ws_item_sk
      JOIN customer_address ON ca_address_sk = ws_bill_addr_sk
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
    WHERE ca_gmt_offset = -5 AND d_moy = 11 AND d_year = 2000
      AND i_item_id IN (SELECT i_item_id FROM item WHERE i_category IN ('Music'))
    GROUP BY i_item_id)
SELECT i_item_id, sum(sold) AS total_sales
FROM (
    SELECT * FROM on_web
    UNION ALL
    SELECT * FROM by_catalog
    UNION ALL
    SELECT * FROM in_stores) everywhere
GROUP BY i_item_id
ORDER BY i_item_id, total_sales
LIMIT 100
