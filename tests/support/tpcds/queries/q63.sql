-- Managers whose sales of a month were far from their average month.
SELECT *
FROM (
  SELECT i_manager_id, sum(ss_sales_price) AS sum_sales,
    avg(sum(ss_sales_price)) OVER (PARTITION BY i_manager_id) AS avg_monthly_sales
  FROM item, store_sales, date_dim, store
  WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
    AND d_month_seq IN (1200, 1201, 1202, 1203, 1204, 1205, 1206, 1207, 1208, 1209, 1210, 1211)
    AND ((i_category IN ('Books', 'Home', 'Electronics')
        AND i_class IN ('fiction', 'decor', 'audio', 'portable', 'history')
        AND i_brand IN ('booksfiction #1', 'booksfiction #2', 'homedecor #1', 'electronicsaudio #3', 'bookshistory #1'))
      OR (i_category IN ('Women', 'Music', 'Jewelry') AND i_class IN ('rock', 'pop', 'dresses', 'rings')
        AND i_brand IN ('musicrock #1', 'musicpop #2', 'musicrock #3', 'womendresses #1')))
  GROUP BY i_manager_id, d_moy) managers
WHERE CASE WHEN avg_monthly_sales > 0 THEN abs(sum_sales - avg_monthly_sales) / avg_monthly_sales ELSE NULL END > 0.1
ORDER BY i_manager_id, avg_monthly_sales, sum_sales
LIMIT 100
