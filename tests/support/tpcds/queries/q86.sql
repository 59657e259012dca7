-- What the web was paid by category and class within a year, ranked within each level.
SELECT sum(ws_net_paid) AS total_sum, i_category, i_class,
  grouping(i_class) + grouping(i_category) AS lochierarchy,
  rank() OVER (
    PARTITION BY grouping(i_class) + grouping(i_category), CASE grouping(i_class) WHEN 0 THEN i_category END
    ORDER BY sum(ws_net_paid) DESC) AS rank_within_parent
FROM web_sales
  JOIN item ON i_item_sk = ws_item_sk
  JOIN date_dim ON d_date_sk = ws_sold_date_sk
WHERE d_month_seq BETWEEN 1200 AND 1211
GROUP BY ROLLUP (i_category, i_class)
ORDER BY lochierarchy DESC, CASE lochierarchy WHEN 0 THEN i_category END, rank_within_parent, i_category,
  i_class, total_sum
LIMIT 100
