-- Revenue of items by catalog within 30 days, and what part it is of that of its class.
SELECT i_item_id, i_item_desc, i_category, i_class, i_current_price, sum(cs_ext_sales_price) AS itemrevenue,
  sum(cs_ext_sales_price) * 100 / nullif(sum(sum(cs_ext_sales_price)) OVER (PARTITION BY i_class), 0) AS revenueratio
FROM catalog_sales JOIN item ON cs_item_sk = i_item_sk JOIN date_dim ON cs_sold_date_sk = d_date_sk
WHERE i_category IN ('Sports', 'Books', 'Music')
  AND d_date BETWEEN CAST('2000-02-01' AS DATE) AND (CAST('2000-02-01' AS DATE) + INTERVAL 30 DAYS)
GROUP BY i_item_id, i_item_desc, i_category, i_class, i_current_price
ORDER BY i_category, i_class, i_item_id, i_item_desc, revenueratio, i_current_price, itemrevenue
LIMIT 100
