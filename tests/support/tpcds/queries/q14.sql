-- November sales, above the average one, of kinds of items that sell in all three channels.
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
      WHERE d_year BETWEEN 1999 AND 2001) every_line)
SELECT channel, i_brand_id, i_class_id, i_category_id, sum(sales) AS sales, sum(number_sales) AS number_sales
FROM (
    SELECT 'web' AS channel, i_brand_id, i_class_id, i_category_id, sum(ws_quantity * ws_list_price) AS sales,
      count(*) AS number_sales
    FROM web_sales
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
      JOIN item ON i_item_sk = ws_item_sk
    WHERE d_moy = 11 AND d_year = 2000 AND ws_item_sk IN (SELECT thing FROM sold_everywhere)
    GROUP BY i_category_id, i_class_id, i_brand_id
    HAVING sum(ws_quantity * ws_list_price) > (SELECT amount FROM usual)
    UNION ALL
    SELECT 'catalog', i_brand_id, i_class_id, i_category_id, sum(cs_quantity * cs_list_price),
      count(*)
    FROM catalog_sales
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
      JOIN item ON i_item_sk = cs_item_sk
    WHERE d_moy = 11 AND d_year = 2000 AND cs_item_sk IN (SELECT thing FROM sold_everywhere)
    GROUP BY i_category_id, i_class_id, i_brand_id
    HAVING sum(cs_quantity * cs_list_price) > (SELECT amount FROM usual)
    UNION ALL
    SELECT 'store', i_brand_id, i_class_id, i_category_id, sum(ss_quantity * ss_list_price),
      count(*)
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
      JOIN item ON i_item_sk = ss_item_sk
    WHERE d_moy = 11 AND d_year = 2000 AND ss_item_sk IN (SELECT thing FROM sold_everywhere)
    GROUP BY i_category_id, i_class_id, i_brand_id
    HAVING sum(ss_quantity * ss_list_price) > (SELECT amount FROM usual)) kinds
GROUP BY ROLLUP (channel, i_brand_id, i_class_id, i_category_id)
ORDER BY channel, i_brand_id, i_class_id, i_category_id, sales, number_sales
LIMIT 100
