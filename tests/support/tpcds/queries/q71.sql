-- What the brands of one manager sold at breakfast and at dinner in a November, by minute, in all channels.
WITH november AS (
  SELECT ss_item_sk AS thing, ss_sold_time_sk AS moment, ss_ext_sales_price AS price
  FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk
  WHERE d_year = 2000 AND d_moy = 11
  UNION ALL
  SELECT cs_item_sk, cs_sold_time_sk, cs_ext_sales_price
  FROM catalog_sales JOIN date_dim ON d_date_sk = cs_sold_date_sk
  WHERE d_year = 2000 AND d_moy = 11
  UNION ALL
  SELECT ws_item_sk, ws_sold_time_sk, ws_ext_sales_price
  FROM web_sales JOIN date_dim ON d_date_sk = ws_sold_date_sk
  WHERE d_year = 2000 AND d_moy = 11)
SELECT i_brand_id AS brand_id, i_brand AS brand, t_hour, t_minute, sum(price) AS ext_price
FROM november
  JOIN time_dim ON t_time_sk = moment
  JOIN item ON i_item_sk = thing
WHERE t_meal_time IN ('breakfast', 'dinner') AND i_manager_id = 1
GROUP BY t_hour, t_minute, i_brand_id, i_brand
ORDER BY ext_price DESC, brand_id
