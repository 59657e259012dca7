-- Things of four makers, neither cheap nor dear, that are in stock within 60 days and sell in stores.
SELECT i_item_id, i_item_desc, i_current_price
FROM inventory
  JOIN date_dim ON d_date_sk = inv_date_sk
  JOIN item ON i_item_sk = inv_item_sk
  JOIN store_sales ON ss_item_sk = i_item_sk
WHERE inv_quantity_on_hand BETWEEN 100 AND 500
  AND d_date BETWEEN DATE '2000-02-25' AND DATE '2000-02-25' + INTERVAL 60 DAYS
  AND i_manufact_id IN (128, 436, 677, 941) AND i_current_price BETWEEN 30 AND 80
GROUP BY i_item_id, i_item_desc, i_current_price
ORDER BY i_item_id, i_item_desc, i_current_price
LIMIT 100
