-- What the best customers paid in all, by catalog and web, for things that stores sell often.
WITH often AS (
    SELECT substr(i_item_desc, 1, 30) AS words, i_item_sk AS item_sk, d_date AS day, count(*) AS cnt
    FROM store_sales, date_dim, item
    WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND d_year IN (2000, 2000 + 1, 2000 + 2, 2000 + 3)
    GROUP BY substr(i_item_desc, 1, 30), i_item_sk, d_date
    HAVING count(*) > 1),
  most AS (
    SELECT max(csales) AS highest
    FROM (
      SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS csales
      FROM store_sales, customer, date_dim
      WHERE ss_customer_sk = c_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year IN (2000, 2001, 2002, 2003)
      GROUP BY c_customer_sk) x),
  best AS (
    SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS ssales
    FROM store_sales, customer
    WHERE ss_customer_sk = c_customer_sk
    GROUP BY c_customer_sk
    HAVING sum(ss_quantity * ss_sales_price) > (50 / 100.0) * (SELECT highest FROM most))
SELECT sum(sales)
FROM (
    SELECT cs_quantity * cs_list_price AS sales
    FROM catalog_sales, date_dim
    WHERE d_year = 2000 AND d_moy BETWEEN 2 AND 4 AND cs_sold_date_sk = d_date_sk
      AND cs_item_sk IN (SELECT item_sk FROM often) AND cs_bill_customer_sk IN (SELECT c_customer_sk FROM best)
    UNION ALL
    SELECT ws_quantity * ws_list_price
    FROM web_sales, date_dim
    WHERE d_year = 2000 AND d_moy BETWEEN 2 AND 4 AND ws_sold_date_sk = d_date_sk
      AND ws_item_sk IN (SELECT item_sk FROM often) AND ws_bill_customer_sk IN (SELECT c_customer_sk FROM best)) paid
LIMIT 100
