-- Months in which a brand's sales in a store were far from the year's average, with the months beside them.
WITH v1 AS (
    SELECT i_category, i_brand, s_store_name, s_company_name, d_year, d_moy, sum(ss_sales_price) AS sum_sales,
      avg(sum(ss_sales_price)) OVER (PARTITION BY i_category, i_brand, s_store_name, s_company_name, d_year)
        AS avg_monthly_sales,
      rank() OVER (PARTITION BY i_category, i_brand, s_store_name, s_company_name ORDER BY d_year, d_moy) AS rn
    FROM item, store_sales, date_dim, store
    WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
      AND (d_year = 2000 OR (d_year = 2000 - 1 AND d_moy = 12) OR (d_year = 2000 + 1 AND d_moy = 1))
    GROUP BY i_category, i_brand, s_store_name, s_company_name, d_year, d_moy),
  v2 AS (
    SELECT v1.i_category, v1.i_brand, v1.s_store_name, v1.s_company_name, v1.d_year, v1.d_moy, v1.avg_monthly_sales,
      v1.sum_sales, before.sum_sales AS psum, after.sum_sales AS nsum
    FROM v1, v1 before, v1 after
    WHERE v1.i_category = before.i_category AND v1.i_category = after.i_category AND v1.i_brand = before.i_brand
      AND v1.i_brand = after.i_brand AND v1.s_store_name = before.s_store_name
      AND v1.s_store_name = after.s_store_name AND v1.s_company_name = before.s_company_name
      AND v1.s_company_name = after.s_company_name AND v1.rn = before.rn + 1 AND v1.rn = after.rn - 1)
SELECT *
FROM v2
WHERE d_year = 2000 AND avg_monthly_sales > 0
  AND CASE WHEN avg_monthly_sales > 0 THEN abs(sum_sales - avg_monthly_sales) / avg_monthly_sales ELSE NULL END > 0.1
ORDER BY sum_sales - avg_monthly_sales, i_category, i_brand, s_store_name, s_company_name, d_year, d_moy, psum, nsum
LIMIT 100
