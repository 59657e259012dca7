-- Average stock within a year by product and, added up, by brand, class and category.
SELECT i_product_name, i_brand, i_class, i_category, avg(inv_quantity_on_hand) AS qoh
FROM inventory
  JOIN item ON i_item_sk = inv_item_sk
  JOIN date_dim ON d_date_sk = inv_date_sk
WHERE d_month_seq BETWEEN 1200 AND 1211
GROUP BY ROLLUP (i_product_name, i_brand, i_class, i_category)
ORDER BY qoh, i_product_name, i_brand, i_class, i_category
LIMIT 100
