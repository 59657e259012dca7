-- Brands of books of which at least a tenth fewer were sold than in the year before, returns taken off.
WITH kept AS (
    SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id,
      ss_quantity - coalesce(sr_return_quantity, 0) AS pieces,
      ss_ext_sales_price - coalesce(sr_return_amt, 0.0) AS amount
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
      JOIN item ON i_item_sk = ss_item_sk
      LEFT JOIN store_returns ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number
    WHERE i_category = 'Books'
    UNION
    SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id,
      cs_quantity - coalesce(cr_return_quantity, 0),
      cs_ext_sales_price - coalesce(cr_return_amount, 0.0)
    FROM catalog_sales
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
      JOIN item ON i_item_sk = cs_item_sk
      LEFT JOIN catalog_returns ON cr_item_sk = cs_item_sk AND cr_order_number = cs_order_number
    WHERE i_category = 'Books'
    UNION
    SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id,
      ws_quantity - coalesce(wr_return_quantity, 0),
      ws_ext_sales_price - coalesce(wr_return_amt, 0.0)
    FROM web_sales
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
      JOIN item ON i_item_sk = ws_item_sk
      LEFT JOIN web_returns ON wr_item_sk = ws_item_sk AND wr_order_number = ws_order_number
    WHERE i_category = 'Books'),
  yearly AS (
    SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id, sum(pieces) AS pieces,
      sum(amount) AS amount
    FROM kept
    GROUP BY d_year, i_category_id, i_class_id, i_brand_id, i_manufact_id)
SELECT earlier.d_year AS prev_year, recent.d_year AS year, recent.i_brand_id, recent.i_class_id,
  recent.i_category_id,
  recent.i_manufact_id, earlier.pieces AS prev_yr_cnt, recent.pieces AS curr_yr_cnt,
  recent.pieces - earlier.pieces AS sales_cnt_diff, recent.amount - earlier.amount AS sales_amt_diff
FROM yearly recent
  JOIN yearly earlier ON earlier.i_manufact_id = recent.i_manufact_id
    AND earlier.i_category_id = recent.i_category_id
    AND earlier.i_class_id = recent.i_class_id AND earlier.i_brand_id = recent.i_brand_id
WHERE earlier.d_year = 2000 AND recent.d_year = 2001
  AND CAST(recent.pieces AS DECIMAL(17, 2)) / CAST(nullif(earlier.pieces, 0) AS DECIMAL(17, 2)) < 0.9
ORDER BY sales_cnt_diff, sales_amt_diff, prev_year, year, recent.i_brand_id, recent.i_class_id,
  recent.i_category_id,
  recent.i_manufact_id, prev_yr_cnt, curr_yr_cnt
LIMIT 100
