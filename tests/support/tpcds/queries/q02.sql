-- How the sales of each weekday on the web and by catalog compare with those of 53 weeks later.
WITH sold AS (
    SELECT cs_sold_date_sk AS day_sk, cs_ext_sales_price AS price FROM catalog_sales
    UNION ALL
    SELECT ws_sold_date_sk, ws_ext_sales_price FROM web_sales),
  weekly AS (
    SELECT d_week_seq AS week,
      sum(CASE d_day_name WHEN 'Sunday' THEN price END) AS sun,
      sum(CASE d_day_name WHEN 'Monday' THEN price END) AS mon,
      sum(CASE d_day_name WHEN 'Tuesday' THEN price END) AS tue,
      sum(CASE d_day_name WHEN 'Wednesday' THEN price END) AS wed,
      sum(CASE d_day_name WHEN 'Thursday' THEN price END) AS thu,
      sum(CASE d_day_name WHEN 'Friday' THEN price END) AS fri,
      sum(CASE d_day_name WHEN 'Saturday' THEN price END) AS sat
    FROM sold
      JOIN date_dim ON d_date_sk = day_sk
    GROUP BY d_week_seq),
  first_year AS (
    SELECT weekly.* FROM weekly JOIN date_dim ON d_week_seq = week WHERE d_year = 2000),
  second_year AS (
    SELECT weekly.* FROM weekly JOIN date_dim ON d_week_seq = week WHERE d_year = 2001)
SELECT first_year.week,
  round(first_year.sun / nullif(second_year.sun, 0), 2),
  round(first_year.mon / nullif(second_year.mon, 0), 2),
  round(first_year.tue / nullif(second_year.tue, 0), 2),
  round(first_year.wed / nullif(second_year.wed, 0), 2),
  round(first_year.thu / nullif(second_year.thu, 0), 2),
  round(first_year.fri / nullif(second_year.fri, 0), 2),
  round(first_year.sat / nullif(second_year.sat, 0), 2)
FROM first_year
  JOIN second_year ON second_year.week - 53 = first_year.week
ORDER BY first_year.week
