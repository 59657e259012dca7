-- What categories sold in a November.
SELECT d_year, i_category_id, i_category, sum(ss_ext_sales_price) AS total
FROM date_dim JOIN store_sales ON d_date_sk = ss_sold_date_sk JOIN item ON ss_item_sk = i_item_sk
WHERE i_manager_id = 1 AND d_moy = 11 AND d_year = 2000
GROUP BY d_year, i_category_id, i_category
ORDER BY sum(ss_ext_sales_price) DESC, d_year, i_category_id, i_category
LIMIT 100
