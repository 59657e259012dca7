-- Items of which the stock of a warehouse varies very much in January and much in February.
-- Deviations are rounded: Spark's last digit depends on the order in which it reads rows.
WITH monthly AS (
    SELECT w_warehouse_sk, w_warehouse_name, i_item_sk, d_moy, avg(inv_quantity_on_hand) AS mean,
      stddev_samp(inv_quantity_on_hand) AS deviation
    FROM inventory
      JOIN date_dim ON d_date_sk = inv_date_sk
      JOIN warehouse ON w_warehouse_sk = inv_warehouse_sk
      JOIN item ON i_item_sk = inv_item_sk
    WHERE d_year = 2000
    GROUP BY d_moy, i_item_sk, w_warehouse_sk, w_warehouse_name),
  unsteady AS (
    SELECT w_warehouse_sk, i_item_sk, d_moy, mean,
      CASE WHEN mean <> 0 THEN round(deviation / mean, 6) END AS cov
    FROM monthly
    WHERE CASE mean WHEN 0 THEN 0 ELSE round(deviation / mean, 6) END > 0.7)
SELECT january.w_warehouse_sk, january.i_item_sk, january.d_moy, january.mean, january.cov,
  february.w_warehouse_sk, february.i_item_sk, february.d_moy, february.mean, february.cov
FROM unsteady january
  JOIN unsteady february ON february.w_warehouse_sk = january.w_warehouse_sk
    AND february.i_item_sk = january.i_item_sk
WHERE february.d_moy = 2 AND january.d_moy = 1 AND january.cov > 1.0
ORDER BY january.w_warehouse_sk, january.i_item_sk, january.d_moy, january.mean, january.cov, february.d_moy,
  february.mean, february.cov
