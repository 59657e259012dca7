-- What all channels together sold in February 2000, by maker, of the makers of books.
WITH in_stores AS (
    SELECT i_manufact_id, sum(ss_ext_sales_price) AS sold
    FROM store_sales
      JOIN item ON i_item_sk = ss_item_sk
      JOIN customer_address ON ca_address_sk = ss_addr_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE ca_gmt_offset = -5 AND d_moy = 2 AND d_year = 2000
      AND i_manufact_id IN (SELECT i_manufact_id FROM item WHERE i_category IN ('Books'))
    GROUP BY i_manufact_id),
  by_catalog AS (
    SELECT i_manufact_id, sum(cs_ext_sales_price) AS sold
    FROM catalog_sales
      JOIN item ON i_item_sk = cs_item_sk
      JOIN customer_address ON ca_address_sk = cs_bill_addr_sk
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
    WHERE ca_gmt_offset = -5 AND d_moy = 2 AND d_year = 2000
      AND i_manufact_id IN (SELECT i_manufact_id FROM item WHERE i_category IN ('Books'))
    GROUP BY i_manufact_id),
  on_web AS (
    SELECT i_manufact_id, sum(ws_ext_sales_price) AS sold
    FROM web_sales
      JOIN item ON i_item_sk = ws_item_sk
      JOIN customer_address ON ca_address_sk = ws_bill_addr_sk
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
    WHERE ca_gmt_offset = -5 AND d_moy = 2 AND d_year = 2000
      AND i_manufact_id IN (SELECT i_manufact_id FROM item WHERE i_category IN ('Books'))
    GROUP BY i_manufact_id)
SELECT i_manufact_id, sum(sold) AS total_sales
FROM (
    SELECT * FROM on_web
    UNION ALL
    SELECT * FROM by_catalog
    UNION ALL
    SELECT * FROM in_stores) everywhere
GROUP BY i_manufact_id
ORDER BY total_sales, i_manufact_id
LIMIT 100
