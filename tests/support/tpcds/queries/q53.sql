-- Makers whose store sales of a quarter were more than a tenth away from their average quarter.
WITH quarters AS (
  SELECT i_manufact_id, sum(ss_sales_price) AS sum_sales,
    avg(sum(ss_sales_price)) OVER (PARTITION BY i_manufact_id) AS avg_quarterly_sales
  FROM store_sales
    JOIN store ON s_store_sk = ss_store_sk
    JOIN date_dim ON d_date_sk = ss_sold_date_sk
    JOIN item ON i_item_sk = ss_item_sk
  WHERE (i_brand IN ('musicrock #1', 'musicrock #3', 'musicpop #2', 'womendresses #1')
      AND i_class IN ('dresses', 'pop', 'rings', 'rock')
      AND i_category IN ('Jewelry', 'Music', 'Women')
    OR i_brand IN ('booksfiction #1', 'booksfiction #2', 'bookshistory #1', 'electronicsaudio #3',
        'homedecor #1')
      AND i_class IN ('audio', 'decor', 'fiction', 'history', 'portable')
      AND i_category IN ('Books', 'Electronics', 'Home'))
    AND d_month_seq IN (1200, 1201, 1202, 1203, 1204, 1205, 1206, 1207, 1208, 1209, 1210, 1211)
  GROUP BY d_qoy, i_manufact_id)
SELECT i_manufact_id, sum_sales, avg_quarterly_sales
FROM quarters
WHERE CASE WHEN avg_quarterly_sales > 0
  THEN abs(sum_sales - avg_quarterly_sales) / avg_quarterly_sales END > 0.1
ORDER BY avg_quarterly_sales, sum_sales, i_manufact_id
LIMIT 100
