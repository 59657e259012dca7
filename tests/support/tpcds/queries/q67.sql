-- The hundred best sums of store sales within each category, at every level of detail.
WITH totals AS (
    SELECT i_category, i_class, i_brand, i_product_name, d_year, d_qoy, d_moy, s_store_id,
      sum(coalesce(ss_quantity * ss_sales_price, 0)) AS sumsales
    FROM store_sales
      JOIN item ON i_item_sk = ss_item_sk
      JOIN store ON s_store_sk = ss_store_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211
    GROUP BY ROLLUP (i_category, i_class, i_brand, i_product_name, d_year, d_qoy, d_moy, s_store_id)),
  ranked AS (SELECT *, rank() OVER (PARTITION BY i_category ORDER BY sumsales DESC) AS rk FROM totals)
SELECT *
FROM ranked
WHERE rk <= 100
ORDER BY i_category, i_class, i_brand, i_product_name, d_year, d_qoy, d_moy, s_store_id, sumsales, rk
LIMIT 100
