-- Catalog sales less refunds, by item and state of the warehouse, in the 30 days before a day and after it.
SELECT w_state, i_item_id, sum(CASE WHEN early THEN kept ELSE 0 END) AS sales_before,
  sum(CASE WHEN NOT early THEN kept ELSE 0 END) AS sales_after
FROM (
    SELECT w_state, i_item_id, d_date < DATE '2000-03-01' AS early,
      cs_sales_price - coalesce(cr_refunded_cash, 0) AS kept
    FROM catalog_sales
      LEFT OUTER JOIN catalog_returns ON cr_item_sk = cs_item_sk AND cr_order_number = cs_order_number
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
      JOIN item ON i_item_sk = cs_item_sk
      JOIN warehouse ON w_warehouse_sk = cs_warehouse_sk
    WHERE d_date BETWEEN DATE '2000-03-01' - INTERVAL 30 DAYS AND DATE '2000-03-01' + INTERVAL 30 DAYS
      AND i_current_price BETWEEN 10.99 AND 91.49) paid
GROUP BY i_item_id, w_state
ORDER BY w_state, i_item_id, sales_before, sales_after
LIMIT 100
