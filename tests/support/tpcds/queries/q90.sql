-- How many times as many web sales there are in two hours of the morning as in two of the evening.
WITH sold AS (
  SELECT t_hour
  FROM web_sales
    JOIN web_page ON wp_web_page_sk = ws_web_page_sk
    JOIN household_demographics ON hd_demo_sk = ws_ship_hdemo_sk
    JOIN time_dim ON t_time_sk = ws_sold_time_sk
  WHERE wp_char_count BETWEEN 4900 AND 5200 AND hd_dep_count IN (4, 6))
SELECT CAST(morning.sales AS DECIMAL(15, 4)) / CAST(nullif(evening.sales, 0) AS DECIMAL(15, 4)) AS am_pm_ratio
FROM (SELECT count(*) AS sales FROM sold WHERE t_hour BETWEEN 8 AND 9) morning
  CROSS JOIN (SELECT count(*) AS sales FROM sold WHERE t_hour BETWEEN 19 AND 20) evening
ORDER BY am_pm_ratio
LIMIT 100
