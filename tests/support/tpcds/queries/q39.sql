-- Items of which the stock of a warehouse varies much in one month and in the next.
-- Deviations are rounded: Spark's last digit depends on the order in which it reads rows.
WITH inv AS (
  SELECT w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy, round(stdev, 6) AS stdev, mean,
    CASE mean WHEN 0 THEN NULL ELSE round(stdev / mean, 6) END AS cov
  FROM (
    SELECT w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy, stddev_samp(inv_quantity_on_hand) AS stdev,
      avg(inv_quantity_on_hand) AS mean
    FROM inventory, item, warehouse, date_dim
    WHERE inv_item_sk = i_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk AND d_year = 2000
    GROUP BY w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy) foo
  WHERE CASE mean WHEN 0 THEN 0 ELSE round(stdev / mean, 6) END > 0.7)
SELECT inv1.w_warehouse_sk, inv1.i_item_sk, inv1.d_moy, inv1.mean, inv1.cov, inv2.w_warehouse_sk, inv2.i_item_sk,
  inv2.d_moy, inv2.mean, inv2.cov
FROM inv inv1 JOIN inv inv2 ON inv1.i_item_sk = inv2.i_item_sk AND inv1.w_warehouse_sk = inv2.w_warehouse_sk
WHERE inv1.d_moy = 1 AND inv2.d_moy = 1 + 1
ORDER BY inv1.w_warehouse_sk, inv1.i_item_sk, inv1.d_moy, inv1.mean, inv1.cov, inv2.d_moy, inv2.mean, inv2.cov
