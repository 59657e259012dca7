-- Sales of such items in stores in one week beside those of an earlier one, where both are above the average.
WITH crossed AS (
    SELECT i_item_sk AS sk
    FROM item, (
      SELECT one.i_brand_id AS brand, one.i_class_id AS class, one.i_category_id AS category
      FROM store_sales, item one, date_dim
      WHERE ss_item_sk = one.i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 1999 + 2
      INTERSECT
      SELECT two.i_brand_id, two.i_class_id, two.i_category_id
      FROM catalog_sales, item two, date_dim
      WHERE cs_item_sk = two.i_item_sk AND cs_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 1999 + 2
      INTERSECT
      SELECT three.i_brand_id, three.i_class_id, three.i_category_id
      FROM web_sales, item three, date_dim
      WHERE ws_item_sk = three.i_item_sk AND ws_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 1999 + 2) common
    WHERE i_brand_id = brand AND i_class_id = class AND i_category_id = category),
  usual AS (
    SELECT avg(quantity * list_price) AS average_sales
    FROM (
      SELECT ss_quantity AS quantity, ss_list_price AS list_price
      FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 2001
      UNION ALL
      SELECT cs_quantity, cs_list_price
      FROM catalog_sales, date_dim WHERE cs_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 2001
      UNION ALL
      SELECT ws_quantity, ws_list_price
      FROM web_sales, date_dim WHERE ws_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 2001) x)
SELECT this_week.i_brand_id AS ty_brand, this_week.i_class_id AS ty_class, this_week.i_category_id AS ty_category,
  this_week.sales AS ty_sales, this_week.number_sales AS ty_number_sales, last_week.i_brand_id AS ly_brand,
  last_week.i_class_id AS ly_class, last_week.i_category_id AS ly_category, last_week.sales AS ly_sales,
  last_week.number_sales AS ly_number_sales
FROM (
    SELECT 'store' AS channel, i_brand_id, i_class_id, i_category_id, sum(ss_quantity * ss_list_price) AS sales,
      count(*) AS number_sales
    FROM store_sales, item, date_dim
    WHERE ss_item_sk IN (SELECT sk FROM crossed) AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
      AND d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_year = 2000 AND d_moy = 2 AND d_dom = 22)
    GROUP BY i_brand_id, i_class_id, i_category_id
    HAVING sum(ss_quantity * ss_list_price) > (SELECT average_sales FROM usual)) this_week,
  (
    SELECT 'store' AS channel, i_brand_id, i_class_id, i_category_id, sum(ss_quantity * ss_list_price) AS sales,
      count(*) AS number_sales
    FROM store_sales, item, date_dim
    WHERE ss_item_sk IN (SELECT sk FROM crossed) AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
      AND d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_year = 2000 AND d_moy = 2 AND d_dom = 12)
    GROUP BY i_brand_id, i_class_id, i_category_id
    HAVING sum(ss_quantity * ss_list_price) > (SELECT average_sales FROM usual)) last_week
WHERE this_week.i_brand_id = last_week.i_brand_id AND this_week.i_class_id = last_week.i_class_id
  AND this_week.i_category_id = last_week.i_category_id
ORDER BY this_week.channel, this_week.i_brand_id, this_week.i_class_id, this_week.i_category_id
LIMIT 100
