-- How many sales a store made in each half hour of the morning.
SELECT *
FROM
  (SELECT count(*) AS h8_30_to_9 FROM store_sales, household_demographics, time_dim, store
   WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 8
     AND t_minute >= 30
     AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
       OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2)) AND s_store_name = 'ought') s1,
  (SELECT count(*) AS h9_to_9_30 FROM store_sales, household_demographics, time_dim, store
   WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 9
     AND t_minute < 30
     AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
       OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2)) AND s_store_name = 'ought') s2,
  (SELECT count(*) AS h9_30_to_10 FROM store_sales, household_demographics, time_dim, store
   WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 9
     AND t_minute >= 30
     AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
       OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2)) AND s_store_name = 'ought') s3,
  (SELECT count(*) AS h10_to_10_30 FROM store_sales, household_demographics, time_dim, store
   WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 10
     AND t_minute < 30
     AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
       OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2)) AND s_store_name = 'ought') s4,
  (SELECT count(*) AS h10_30_to_11 FROM store_sales, household_demographics, time_dim, store
   WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 10
     AND t_minute >= 30
     AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
       OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2)) AND s_store_name = 'ought') s5,
  (SELECT count(*) AS h11_to_11_30 FROM store_sales, household_demographics, time_dim, store
   WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 11
     AND t_minute < 30
     AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
       OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2)) AND s_store_name = 'ought') s6,
  (SELECT count(*) AS h11_30_to_12 FROM store_sales, household_demographics, time_dim, store
   WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 11
     AND t_minute >= 30
     AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
       OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2)) AND s_store_name = 'ought') s7,
  (SELECT count(*) AS h12_to_12_30 FROM store_sales, household_demographics, time_dim, store
   WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 12
     AND t_minute < 30
     AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
       OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2)) AND s_store_name = 'ought') s8
