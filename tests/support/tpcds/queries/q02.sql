-- How sales by web and catalog of each weekday compare with those of 53 weeks later.
WITH sold AS (
    SELECT ws_sold_date_sk AS day_sk, ws_ext_sales_price AS price FROM web_sales
    UNION ALL
    SELECT cs_sold_date_sk, cs_ext_sales_price FROM catalog_sales),
  weekly AS (
    SELECT d_week_seq,
      sum(CASE WHEN d_day_name = 'Sunday' THEN price END) AS sun,
      sum(CASE WHEN d_day_name = 'Monday' THEN price END) AS mon,
      sum(CASE WHEN d_day_name = 'Tuesday' THEN price END) AS tue,
      sum(CASE WHEN d_day_name = 'Wednesday' THEN price END) AS wed,
      sum(CASE WHEN d_day_name = 'Thursday' THEN price END) AS thu,
      sum(CASE WHEN d_day_name = 'Friday' THEN price END) AS fri,
      sum(CASE WHEN d_day_name = 'Saturday' THEN price END) AS sat
    FROM sold JOIN date_dim ON d_date_sk = day_sk
    GROUP BY d_week_seq)
SELECT this.week, round(this.sun / nullif(next.sun, 0), 2), round(this.mon / nullif(next.mon, 0), 2),
  round(this.tue / nullif(next.tue, 0), 2), round(this.wed / nullif(next.wed, 0), 2),
  round(this.thu / nullif(next.thu, 0), 2), round(this.fri / nullif(next.fri, 0), 2),
  round(this.sat / nullif(next.sat, 0), 2)
FROM (
    SELECT weekly.d_week_seq AS week, sun, mon, tue, wed, thu, fri, sat
    FROM weekly JOIN date_dim ON date_dim.d_week_seq = weekly.d_week_seq
    WHERE d_year = 2000) this,
  (
    SELECT weekly.d_week_seq AS week, sun, mon, tue, wed, thu, fri, sat
    FROM weekly JOIN date_dim ON date_dim.d_week_seq = weekly.d_week_seq
    WHERE d_year = 2001) next
WHERE this.week = next.week - 53
ORDER BY this.week
