-- Profit of stores by state and county, ranked within each level, of the states that are among the best.
SELECT sum(ss_net_profit) AS total_sum, s_state, s_county,
  grouping(s_county) + grouping(s_state) AS lochierarchy,
  rank() OVER (
    PARTITION BY grouping(s_county) + grouping(s_state), CASE grouping(s_county) WHEN 0 THEN s_state END
    ORDER BY sum(ss_net_profit) DESC) AS rank_within_parent
FROM store_sales
  JOIN store ON s_store_sk = ss_store_sk
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
WHERE s_state IN (
    SELECT ranked.s_state
    FROM (
      SELECT s_state, rank() OVER (PARTITION BY s_state ORDER BY sum(ss_net_profit) DESC) AS place
      FROM store_sales
        JOIN date_dim ON d_date_sk = ss_sold_date_sk
        JOIN store ON s_store_sk = ss_store_sk
      WHERE d_month_seq BETWEEN 1200 AND 1211
      GROUP BY s_state) ranked
    WHERE place <= 5)
  AND d_month_seq BETWEEN 1200 AND 1211
GROUP BY ROLLUP (s_state, s_county)
ORDER BY lochierarchy DESC, CASE lochierarchy WHEN 0 THEN s_state END, rank_within_parent, s_state, s_county,
  total_sum
LIMIT 100
