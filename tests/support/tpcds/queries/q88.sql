-- How many sales a store made to small households in each half hour of the morning.
WITH sold AS (
  SELECT t_hour, t_minute
  FROM store_sales
    JOIN store ON s_store_sk = ss_store_sk
    JOIN time_dim ON t_time_sk = ss_sold_time_sk
    JOIN household_demographics ON hd_demo_sk = ss_hdemo_sk
  WHERE s_store_name = 'ought'
    AND (hd_dep_count = 0 AND hd_vehicle_count <= 2 OR hd_dep_count = 2 AND hd_vehicle_count <= 4
      OR hd_dep_count = 4 AND hd_vehicle_count <= 6))
SELECT *
FROM (SELECT count(*) AS h8_30_to_9 FROM sold WHERE t_hour = 8 AND t_minute >= 30) half_past_8
  CROSS JOIN (SELECT count(*) AS h9_to_9_30 FROM sold WHERE t_hour = 9 AND t_minute < 30) nine
  CROSS JOIN (SELECT count(*) AS h9_30_to_10 FROM sold WHERE t_hour = 9 AND t_minute >= 30) half_past_9
  CROSS JOIN (SELECT count(*) AS h10_to_10_30 FROM sold WHERE t_hour = 10 AND t_minute < 30) ten
  CROSS JOIN (SELECT count(*) AS h10_30_to_11 FROM sold WHERE t_hour = 10 AND t_minute >= 30) half_past_10
  CROSS JOIN (SELECT count(*) AS h11_to_11_30 FROM sold WHERE t_hour = 11 AND t_minute < 30) eleven
  CROSS JOIN (SELECT count(*) AS h11_30_to_12 FROM sold WHERE t_hour = 11 AND t_minute >= 30) half_past_11
  CROSS JOIN (SELECT count(*) AS h12_to_12_30 FROM sold WHERE t_hour = 12 AND t_minute < 30) noon
