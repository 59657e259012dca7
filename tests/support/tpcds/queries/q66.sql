-- What warehouses sent in each month of a year with two carriers, for the web and the catalog together.
WITH for_web AS (
    SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, d_year AS year,
      sum(CASE d_moy WHEN 1 THEN gross ELSE 0 END) AS jan_sales,
      sum(CASE d_moy WHEN 2 THEN gross ELSE 0 END) AS feb_sales,
      sum(CASE d_moy WHEN 3 THEN gross ELSE 0 END) AS mar_sales,
      sum(CASE d_moy WHEN 4 THEN gross ELSE 0 END) AS apr_sales,
      sum(CASE d_moy WHEN 5 THEN gross ELSE 0 END) AS may_sales,
      sum(CASE d_moy WHEN 6 THEN gross ELSE 0 END) AS jun_sales,
      sum(CASE d_moy WHEN 7 THEN gross ELSE 0 END) AS jul_sales,
      sum(CASE d_moy WHEN 8 THEN gross ELSE 0 END) AS aug_sales,
      sum(CASE d_moy WHEN 9 THEN gross ELSE 0 END) AS sep_sales,
      sum(CASE d_moy WHEN 10 THEN gross ELSE 0 END) AS oct_sales,
      sum(CASE d_moy WHEN 11 THEN gross ELSE 0 END) AS nov_sales,
      sum(CASE d_moy WHEN 12 THEN gross ELSE 0 END) AS dec_sales,
      sum(CASE d_moy WHEN 1 THEN net ELSE 0 END) AS jan_net,
      sum(CASE d_moy WHEN 2 THEN net ELSE 0 END) AS feb_net,
      sum(CASE d_moy WHEN 3 THEN net ELSE 0 END) AS mar_net,
      sum(CASE d_moy WHEN 4 THEN net ELSE 0 END) AS apr_net,
      sum(CASE d_moy WHEN 5 THEN net ELSE 0 END) AS may_net,
      sum(CASE d_moy WHEN 6 THEN net ELSE 0 END) AS jun_net,
      sum(CASE d_moy WHEN 7 THEN net ELSE 0 END) AS jul_net,
      sum(CASE d_moy WHEN 8 THEN net ELSE 0 END) AS aug_net,
      sum(CASE d_moy WHEN 9 THEN net ELSE 0 END) AS sep_net,
      sum(CASE d_moy WHEN 10 THEN net ELSE 0 END) AS oct_net,
      sum(CASE d_moy WHEN 11 THEN net ELSE 0 END) AS nov_net,
      sum(CASE d_moy WHEN 12 THEN net ELSE 0 END) AS dec_net
    FROM (
      SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, d_year, d_moy,
        ws_ext_sales_price * ws_quantity AS gross, ws_net_paid * ws_quantity AS net
      FROM web_sales
        JOIN ship_mode ON sm_ship_mode_sk = ws_ship_mode_sk
        JOIN time_dim ON t_time_sk = ws_sold_time_sk
        JOIN date_dim ON d_date_sk = ws_sold_date_sk
        JOIN warehouse ON w_warehouse_sk = ws_warehouse_sk
      WHERE sm_carrier IN ('BARIAN', 'DHL') AND t_time BETWEEN 30838 AND 59638 AND d_year = 2000) sent
    GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, d_year),
  for_catalog AS (
    SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, d_year AS year,
      sum(CASE d_moy WHEN 1 THEN gross ELSE 0 END) AS jan_sales,
      sum(CASE d_moy WHEN 2 THEN gross ELSE 0 END) AS feb_sales,
      sum(CASE d_moy WHEN 3 THEN gross ELSE 0 END) AS mar_sales,
      sum(CASE d_moy WHEN 4 THEN gross ELSE 0 END) AS apr_sales,
      sum(CASE d_moy WHEN 5 THEN gross ELSE 0 END) AS may_sales,
      sum(CASE d_moy WHEN 6 THEN gross ELSE 0 END) AS jun_sales,
      sum(CASE d_moy WHEN 7 THEN gross ELSE 0 END) AS jul_sales,
      sum(CASE d_moy WHEN 8 THEN gross ELSE 0 END) AS aug_sales,
      sum(CASE d_moy WHEN 9 THEN gross ELSE 0 END) AS sep_sales,
      sum(CASE d_moy WHEN 10 THEN gross ELSE 0 END) AS oct_sales,
      sum(CASE d_moy WHEN 11 THEN gross ELSE 0 END) AS nov_sales,
      sum(CASE d_moy WHEN 12 THEN gross ELSE 0 END) AS dec_sales,
      sum(CASE d_moy WHEN 1 THEN net ELSE 0 END) AS jan_net,
      sum(CASE d_moy WHEN 2 THEN net ELSE 0 END) AS feb_net,
      sum(CASE d_moy WHEN 3 THEN net ELSE 0 END) AS mar_net,
      sum(CASE d_moy WHEN 4 THEN net ELSE 0 END) AS apr_net,
      sum(CASE d_moy WHEN 5 THEN net ELSE 0 END) AS may_net,
      sum(CASE d_moy WHEN 6 THEN net ELSE 0 END) AS jun_net,
      sum(CASE d_moy WHEN 7 THEN net ELSE 0 END) AS jul_net,
      sum(CASE d_moy WHEN 8 THEN net ELSE 0 END) AS aug_net,
      sum(CASE d_moy WHEN 9 THEN net ELSE 0 END) AS sep_net,
      sum(CASE d_moy WHEN 10 THEN net ELSE 0 END) AS oct_net,
      sum(CASE d_moy WHEN 11 THEN net ELSE 0 END) AS nov_net,
      sum(CASE d_moy WHEN 12 THEN net ELSE 0 END) AS dec_net
    FROM (
      SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, d_year, d_moy,
        cs_sales_price * cs_quantity AS gross, cs_net_paid_inc_tax * cs_quantity AS net
      FROM catalog_sales
        JOIN ship_mode ON sm_ship_mode_sk = cs_ship_mode_sk
        JOIN time_dim ON t_time_sk = cs_sold_time_sk
        JOIN date_dim ON d_date_sk = cs_sold_date_sk
        JOIN warehouse ON w_warehouse_sk = cs_warehouse_sk
      WHERE sm_carrier IN ('BARIAN', 'DHL') AND t_time BETWEEN 30838 AND 59638 AND d_year = 2000) sent
    GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, d_year)
SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country,
  concat('DHL', ',', 'BARIAN') AS ship_carriers, year,
  sum(jan_sales) AS jan_sales, sum(feb_sales) AS feb_sales,
  sum(mar_sales) AS mar_sales, sum(apr_sales) AS apr_sales,
  sum(may_sales) AS may_sales, sum(jun_sales) AS jun_sales,
  sum(jul_sales) AS jul_sales, sum(aug_sales) AS aug_sales,
  sum(sep_sales) AS sep_sales, sum(oct_sales) AS oct_sales,
  sum(nov_sales) AS nov_sales, sum(dec_sales) AS dec_sales,
  sum(jan_sales / w_warehouse_sq_ft) AS jan_sales_per_sq_foot,
  sum(feb_sales / w_warehouse_sq_ft) AS feb_sales_per_sq_foot,
  sum(mar_sales / w_warehouse_sq_ft) AS mar_sales_per_sq_foot,
  sum(apr_sales / w_warehouse_sq_ft) AS apr_sales_per_sq_foot,
  sum(may_sales / w_warehouse_sq_ft) AS may_sales_per_sq_foot,
  sum(jun_sales / w_warehouse_sq_ft) AS jun_sales_per_sq_foot,
  sum(jul_sales / w_warehouse_sq_ft) AS jul_sales_per_sq_foot,
  sum(aug_sales / w_warehouse_sq_ft) AS aug_sales_per_sq_foot,
  sum(sep_sales / w_warehouse_sq_ft) AS sep_sales_per_sq_foot,
  sum(oct_sales / w_warehouse_sq_ft) AS oct_sales_per_sq_foot,
  sum(nov_sales / w_warehouse_sq_ft) AS nov_sales_per_sq_foot,
  sum(dec_sales / w_warehouse_sq_ft) AS dec_sales_per_sq_foot,
  sum(jan_net) AS jan_net, sum(feb_net) AS feb_net, sum(mar_net) AS mar_net, sum(apr_net) AS apr_net,
  sum(may_net) AS may_net, sum(jun_net) AS jun_net, sum(jul_net) AS jul_net, sum(aug_net) AS aug_net,
  sum(sep_net) AS sep_net, sum(oct_net) AS oct_net, sum(nov_net) AS nov_net, sum(dec_net) AS dec_net
FROM (
    SELECT * FROM for_catalog
    UNION ALL
    SELECT * FROM for_web) either
GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, year
ORDER BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, ship_carriers, year
LIMIT 100
