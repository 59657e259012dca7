-- Warehouses and items of which there was about as much in the 30 days before a day as in those after it.
WITH stock AS (
  SELECT w_warehouse_name, i_item_id,
    sum(CASE WHEN d_date >= DATE '2000-03-11' THEN 0 ELSE inv_quantity_on_hand END) AS inv_before,
    sum(CASE WHEN d_date >= DATE '2000-03-11' THEN inv_quantity_on_hand ELSE 0 END) AS inv_after
  FROM inventory
    JOIN item ON i_item_sk = inv_item_sk
    JOIN warehouse ON w_warehouse_sk = inv_warehouse_sk
    JOIN date_dim ON d_date_sk = inv_date_sk
  WHERE d_date BETWEEN DATE '2000-03-11' - INTERVAL 30 DAYS AND DATE '2000-03-11' + INTERVAL 30 DAYS
    AND i_current_price BETWEEN 10.99 AND 61.49
  GROUP BY i_item_id, w_warehouse_name)
SELECT *
FROM stock
WHERE CASE WHEN inv_before > 0 THEN inv_after / inv_before END BETWEEN 2.0 / 3.0 AND 3.0 / 2.0
ORDER BY w_warehouse_name, i_item_id, inv_before, inv_after
LIMIT 100
