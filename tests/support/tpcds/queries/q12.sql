-- Revenue of items on the web within 30 days, and what part it is of that of their class.
SELECT i_item_id, i_item_desc, i_category, i_class, i_current_price, sum(ws_ext_sales_price) AS itemrevenue,
  sum(ws_ext_sales_price) * 100
    / nullif(sum(sum(ws_ext_sales_price)) OVER (PARTITION BY i_class), 0) AS revenueratio
FROM web_sales
  JOIN date_dim ON d_date_sk = ws_sold_date_sk
  JOIN item ON i_item_sk = ws_item_sk
WHERE d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 30 DAYS
  AND i_category IN ('Books', 'Home', 'Sports')
GROUP BY i_item_id, i_item_desc, i_current_price, i_class, i_category
ORDER BY i_category, i_class, i_item_id, i_item_desc, revenueratio, i_current_price, itemrevenue
LIMIT 100
