-- How many sales two stores made to families of one size in the second half of an evening hour.
SELECT count(*)
FROM store_sales
  JOIN store ON s_store_sk = ss_store_sk
  JOIN time_dim ON t_time_sk = ss_sold_time_sk
  JOIN household_demographics ON hd_demo_sk = ss_hdemo_sk
WHERE s_store_name IN ('ese', 'ought') AND hd_dep_count = 4 AND t_minute >= 30 AND t_hour = 20
ORDER BY count(*)
LIMIT 100
