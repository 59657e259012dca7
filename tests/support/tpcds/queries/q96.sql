-- How many sales a store made late in an evening hour to families of one size.
SELECT count(*)
FROM store_sales, household_demographics, time_dim, store
WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 20
  AND t_minute >= 30 AND hd_dep_count = 4 AND s_store_name IN ('ese', 'ought')
ORDER BY count(*)
LIMIT 100
