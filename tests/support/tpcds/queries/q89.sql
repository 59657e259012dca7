-- Months in which a class sold in a store more than a tenth away from the average month of its brand there.
WITH months AS (
  SELECT i_category, i_class, i_brand, s_store_name, s_company_name, d_moy, sum(ss_sales_price) AS sum_sales,
    avg(sum(ss_sales_price)) OVER (
      PARTITION BY s_company_name, s_store_name, i_category, i_brand) AS avg_monthly_sales
  FROM store_sales
    JOIN store ON s_store_sk = ss_store_sk
    JOIN item ON i_item_sk = ss_item_sk
    JOIN date_dim ON d_date_sk = ss_sold_date_sk
  WHERE (i_class IN ('dresses', 'rings', 'rock') AND i_category IN ('Jewelry', 'Music', 'Women')
      OR i_class IN ('audio', 'fiction', 'golf', 'history')
        AND i_category IN ('Books', 'Electronics', 'Sports'))
    AND d_year IN (2000)
  GROUP BY s_company_name, s_store_name, i_category, i_class, i_brand, d_moy)
SELECT *
FROM months
WHERE CASE WHEN avg_monthly_sales <> 0 THEN abs(sum_sales - avg_monthly_sales) / avg_monthly_sales END > 0.1
ORDER BY sum_sales - avg_monthly_sales, s_store_name, i_category, i_class, i_brand, s_company_name, d_moy,
  sum_sales, avg_monthly_sales
LIMIT 100
