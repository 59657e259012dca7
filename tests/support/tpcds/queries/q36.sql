-- Gross margins of stores of four states by category and class, the lowest first within each level.
SELECT sum(ss_net_profit) / nullif(sum(ss_ext_sales_price), 0) AS gross_margin, i_category, i_class,
  grouping(i_class) + grouping(i_category) AS lochierarchy,
  rank() OVER (
    PARTITION BY grouping(i_class) + grouping(i_category), CASE grouping(i_class) WHEN 0 THEN i_category END
    ORDER BY sum(ss_net_profit) / nullif(sum(ss_ext_sales_price), 0)) AS rank_within_parent
FROM store_sales
  JOIN store ON s_store_sk = ss_store_sk
  JOIN item ON i_item_sk = ss_item_sk
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
WHERE s_state IN ('GA', 'KY', 'TN', 'TX') AND d_year = 2000
GROUP BY ROLLUP (i_category, i_class)
ORDER BY lochierarchy DESC, CASE lochierarchy WHEN 0 THEN i_category END, rank_within_parent, i_category,
  i_class, gross_margin
LIMIT 100
