-- How many sales lack their store, their receiver or his address, by channel, quarter and category.
SELECT channel, col_name, d_year, d_qoy, i_category, count(*) AS sales_cnt, sum(price) AS sales_amt
FROM (
    SELECT 'catalog' AS channel, 'cs_ship_addr_sk' AS col_name, d_year, d_qoy, i_category,
      cs_ext_sales_price AS price
    FROM catalog_sales
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
      JOIN item ON i_item_sk = cs_item_sk
    WHERE cs_ship_addr_sk IS NULL
    UNION ALL
    SELECT 'web', 'ws_ship_customer_sk', d_year, d_qoy, i_category, ws_ext_sales_price
    FROM web_sales
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
      JOIN item ON i_item_sk = ws_item_sk
    WHERE ws_ship_customer_sk IS NULL
    UNION ALL
    SELECT 'store', 'ss_store_sk', d_year, d_qoy, i_category, ss_ext_sales_price
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
      JOIN item ON i_item_sk = ss_item_sk
    WHERE ss_store_sk IS NULL) incomplete
GROUP BY channel, col_name, i_category, d_year, d_qoy
ORDER BY channel, col_name, d_year, d_qoy, i_category
LIMIT 100
