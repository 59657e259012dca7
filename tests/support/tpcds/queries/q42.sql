-- What the categories of one manager sold in stores in November 2000, best first.
SELECT d_year, i_category_id, i_category, sum(ss_ext_sales_price) AS total
FROM store_sales
  JOIN item ON i_item_sk = ss_item_sk
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
WHERE d_year = 2000 AND d_moy = 11 AND i_manager_id = 1
GROUP BY d_year, i_category, i_category_id
ORDER BY total DESC, d_year, i_category_id, i_category
LIMIT 100
