-- How the sales of each store on each weekday compare with those of the same store 52 weeks later.
WITH weekly_sales AS (
    SELECT ss_store_sk AS store_sk, d_week_seq AS week,
      sum(CASE d_day_name WHEN 'Sunday' THEN ss_sales_price END) AS sun,
      sum(CASE d_day_name WHEN 'Monday' THEN ss_sales_price END) AS mon,
      sum(CASE d_day_name WHEN 'Tuesday' THEN ss_sales_price END) AS tue,
      sum(CASE d_day_name WHEN 'Wednesday' THEN ss_sales_price END) AS wed,
      sum(CASE d_day_name WHEN 'Thursday' THEN ss_sales_price END) AS thu,
      sum(CASE d_day_name WHEN 'Friday' THEN ss_sales_price END) AS fri,
      sum(CASE d_day_name WHEN 'Saturday' THEN ss_sales_price END) AS sat
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    GROUP BY ss_store_sk, d_week_seq),
  first_year AS (
    SELECT s_store_id AS s_store_id1, s_store_name AS s_store_name1, week AS d_week_seq1, sun AS sun1,
      mon AS mon1, tue AS tue1, wed AS wed1, thu AS thu1, fri AS fri1, sat AS sat1
    FROM weekly_sales
      JOIN store ON s_store_sk = store_sk
      JOIN date_dim ON d_week_seq = week
    WHERE d_month_seq BETWEEN 1188 AND 1199),
  second_year AS (
    SELECT s_store_id AS s_store_id2, week AS d_week_seq2, sun AS sun2, mon AS mon2, tue AS tue2, wed AS wed2,
      thu AS thu2, fri AS fri2, sat AS sat2
    FROM weekly_sales
      JOIN store ON s_store_sk = store_sk
      JOIN date_dim ON d_week_seq = week
    WHERE d_month_seq BETWEEN 1200 AND 1211)
SELECT s_store_name1, s_store_id1, d_week_seq1, sun1 / nullif(sun2, 0), mon1 / nullif(mon2, 0),
  tue1 / nullif(tue2, 0), wed1 / nullif(wed2, 0), thu1 / nullif(thu2, 0), fri1 / nullif(fri2, 0),
  sat1 / nullif(sat2, 0)
FROM first_year
  JOIN second_year ON d_week_seq2 - 52 = d_week_seq1 AND s_store_id2 = s_store_id1
ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
LIMIT 100
