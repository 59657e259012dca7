-- Averages of what single men bought in stores, by item and state, with subtotals that say what they are.
SELECT i_item_id, s_state, grouping(s_state) AS g_state, avg(ss_quantity) AS agg1, avg(ss_list_price) AS agg2,
  avg(ss_coupon_amt) AS agg3, avg(ss_sales_price) AS agg4
FROM store_sales
  JOIN item ON i_item_sk = ss_item_sk
  JOIN store ON s_store_sk = ss_store_sk
  JOIN customer_demographics ON cd_demo_sk = ss_cdemo_sk
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
WHERE s_state IN ('GA', 'KY', 'TN', 'TX') AND cd_marital_status = 'S' AND cd_gender = 'M' AND d_year = 2000
GROUP BY ROLLUP (i_item_id, s_state)
ORDER BY i_item_id, s_state, g_state, agg1, agg2, agg3, agg4
LIMIT 100
