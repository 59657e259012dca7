-- Store sales of one week, above the average one, of kinds that sell in all channels, and of an earlier week.
WITH sold_everywhere AS (
    SELECT item.i_item_sk AS thing
    FROM (
      SELECT i_brand_id, i_class_id, i_category_id
      FROM web_sales
        JOIN date_dim ON d_date_sk = ws_sold_date_sk
        JOIN item ON i_item_sk = ws_item_sk
      WHERE d_year BETWEEN 1999 AND 2001
      INTERSECT
      SELECT i_brand_id, i_class_id, i_category_id
      FROM catalog_sales
        JOIN date_dim ON d_date_sk = cs_sold_date_sk
        JOIN item ON i_item_sk = cs_item_sk
      WHERE d_year BETWEEN 1999 AND 2001
      INTERSECT
      SELECT i_brand_id, i_class_id, i_category_id
      FROM store_sales
        JOIN date_dim ON d_date_sk = ss_sold_date_sk
        JOIN item ON i_item_sk = ss_item_sk
      WHERE d_year BETWEEN 1999 AND 2001) shared
      JOIN item ON item.i_category_id = shared.i_category_id AND item.i_class_id = shared.i_class_id
        AND item.i_brand_id = shared.i_brand_id),
  usual AS (
    SELECT avg(pieces * price) AS amount
    FROM (
      SELECT ws_quantity AS pieces, ws_list_price AS price
      FROM web_sales JOIN date_dim ON d_date_sk = ws_sold_date_sk
      WHERE d_year BETWEEN 1999 AND 2001
      UNION ALL
      SELECT cs_quantity, cs_list_price
      FROM catalog_sales JOIN date_dim ON d_date_sk = cs_sold_date_sk
      WHERE d_year BETWEEN 1999 AND 2001
      UNION ALL
      SELECT ss_quantity, ss_list_price
      FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk
      WHERE d_year BETWEEN 1999 AND 2001) every_line),
  one_week AS (
    SELECT 'store' AS channel, i_brand_id, i_class_id, i_category_id,
      sum(ss_quantity * ss_list_price) AS sales, count(*) AS number_sales
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
      JOIN item ON i_item_sk = ss_item_sk
    WHERE d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_dom = 22 AND d_moy = 2 AND d_year = 2000)
      AND ss_item_sk IN (SELECT thing FROM sold_everywhere)
    GROUP BY i_category_id, i_class_id, i_brand_id
    HAVING sum(ss_quantity * ss_list_price) > (SELECT amount FROM usual)),
  earlier_week AS (
    SELECT 'store' AS channel, i_brand_id, i_class_id, i_category_id,
      sum(ss_quantity * ss_list_price) AS sales, count(*) AS number_sales
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
      JOIN item ON i_item_sk = ss_item_sk
    WHERE d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_dom = 12 AND d_moy = 2 AND d_year = 2000)
      AND ss_item_sk IN (SELECT thing FROM sold_everywhere)
    GROUP BY i_category_id, i_class_id, i_brand_id
    HAVING sum(ss_quantity * ss_list_price) > (SELECT amount FROM usual))
SELECT one_week.i_brand_id AS ty_brand, one_week.i_class_id AS ty_class,
  one_week.i_category_id AS ty_category,
  one_week.sales AS ty_sales, one_week.number_sales AS ty_number_sales, earlier_week.i_brand_id AS ly_brand,
  earlier_week.i_class_id AS ly_class, earlier_week.i_category_id AS ly_category,
  earlier_week.sales AS ly_sales, earlier_week.number_sales AS ly_number_sales
FROM one_week
  JOIN earlier_week ON earlier_week.i_category_id = one_week.i_category_id
    AND earlier_week.i_class_id = one_week.i_class_id AND earlier_week.i_brand_id = one_week.i_brand_id
ORDER BY one_week.channel, one_week.i_brand_id, one_week.i_class_id, one_week.i_category_id
LIMIT 100
