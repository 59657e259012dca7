-- What the stores of one time zone sold on each day of the week in a year.
SELECT s_store_name, s_store_id,
  sum(CASE d_day_name WHEN 'Sunday' THEN ss_sales_price END) AS sun_sales,
  sum(CASE d_day_name WHEN 'Monday' THEN ss_sales_price END) AS mon_sales,
  sum(CASE d_day_name WHEN 'Tuesday' THEN ss_sales_price END) AS tue_sales,
  sum(CASE d_day_name WHEN 'Wednesday' THEN ss_sales_price END) AS wed_sales,
  sum(CASE d_day_name WHEN 'Thursday' THEN ss_sales_price END) AS thu_sales,
  sum(CASE d_day_name WHEN 'Friday' THEN ss_sales_price END) AS fri_sales,
  sum(CASE d_day_name WHEN 'Saturday' THEN ss_sales_price END) AS sat_sales
FROM store_sales
  JOIN store ON s_store_sk = ss_store_sk
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
WHERE d_year = 2000 AND s_gmt_offset = -5
GROUP BY s_store_id, s_store_name
ORDER BY s_store_name, s_store_id, sun_sales, mon_sales, tue_sales, wed_sales, thu_sales, fri_sales, sat_sales
LIMIT 100
