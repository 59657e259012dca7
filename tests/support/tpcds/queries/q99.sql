-- How many catalog orders were shipped within 30 to 120 days, by warehouse, way of shipping and call centre.
SELECT substr(w_warehouse_name, 1, 20), sm_type, cc_name,
  sum(CASE WHEN days <= 30 THEN 1 ELSE 0 END) AS `30 days`,
  sum(CASE WHEN days > 30 AND days <= 60 THEN 1 ELSE 0 END) AS `31-60 days`,
  sum(CASE WHEN days > 60 AND days <= 90 THEN 1 ELSE 0 END) AS `61-90 days`,
  sum(CASE WHEN days > 90 AND days <= 120 THEN 1 ELSE 0 END) AS `91-120 days`,
  sum(CASE WHEN days > 120 THEN 1 ELSE 0 END) AS `>120 days`
FROM (
    SELECT w_warehouse_name, sm_type, cc_name, cs_ship_date_sk - cs_sold_date_sk AS days
    FROM catalog_sales
      JOIN date_dim ON d_date_sk = cs_ship_date_sk
      JOIN call_center ON cc_call_center_sk = cs_call_center_sk
      JOIN ship_mode ON sm_ship_mode_sk = cs_ship_mode_sk
      JOIN warehouse ON w_warehouse_sk = cs_warehouse_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211) shipped
GROUP BY cc_name, sm_type, substr(w_warehouse_name, 1, 20)
ORDER BY substr(w_warehouse_name, 1, 20), sm_type, cc_name
LIMIT 100
