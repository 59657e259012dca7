-- How sales of stores on each weekday compare with those of 52 weeks later.
WITH wss AS (
  SELECT d_week_seq, ss_store_sk,
    sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price ELSE NULL END) AS sun_sales,
    sum(CASE WHEN d_day_name = 'Monday' THEN ss_sales_price ELSE NULL END) AS mon_sales,
    sum(CASE WHEN d_day_name = 'Tuesday' THEN ss_sales_price ELSE NULL END) AS tue_sales,
    sum(CASE WHEN d_day_name = 'Wednesday' THEN ss_sales_price ELSE NULL END) AS wed_sales,
    sum(CASE WHEN d_day_name = 'Thursday' THEN ss_sales_price ELSE NULL END) AS thu_sales,
    sum(CASE WHEN d_day_name = 'Friday' THEN ss_sales_price ELSE NULL END) AS fri_sales,
    sum(CASE WHEN d_day_name = 'Saturday' THEN ss_sales_price ELSE NULL END) AS sat_sales
  FROM store_sales, date_dim
  WHERE d_date_sk = ss_sold_date_sk
  GROUP BY d_week_seq, ss_store_sk)
SELECT s_store_name1, s_store_id1, d_week_seq1, sun1 / nullif(sun2, 0), mon1 / nullif(mon2, 0), tue1 / nullif(tue2, 0),
  wed1 / nullif(wed2, 0), thu1 / nullif(thu2, 0), fri1 / nullif(fri2, 0), sat1 / nullif(sat2, 0)
FROM (
    SELECT s_store_name AS s_store_name1, wss.d_week_seq AS d_week_seq1, s_store_id AS s_store_id1, sun_sales AS sun1,
      mon_sales AS mon1, tue_sales AS tue1, wed_sales AS wed1, thu_sales AS thu1, fri_sales AS fri1,
      sat_sales AS sat1
    FROM wss, store, date_dim d
    WHERE d.d_week_seq = wss.d_week_seq AND ss_store_sk = s_store_sk AND d_month_seq BETWEEN 1188 AND 1188 + 11) y,
  (
    SELECT s_store_name AS s_store_name2, wss.d_week_seq AS d_week_seq2, s_store_id AS s_store_id2, sun_sales AS sun2,
      mon_sales AS mon2, tue_sales AS tue2, wed_sales AS wed2, thu_sales AS thu2, fri_sales AS fri2,
      sat_sales AS sat2
    FROM wss, store, date_dim d
    WHERE d.d_week_seq = wss.d_week_seq AND ss_store_sk = s_store_sk
      AND d_month_seq BETWEEN 1188 + 12 AND 1188 + 23) x
WHERE s_store_id1 = s_store_id2 AND d_week_seq1 = d_week_seq2 - 52
ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
LIMIT 100
