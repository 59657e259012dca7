-- What each of the best customers paid on the web and by catalog for things that stores sell often.
WITH sold_often AS (
    SELECT i_item_sk AS thing, substr(i_item_desc, 1, 30) AS words, d_date AS day
    FROM store_sales
      JOIN item ON i_item_sk = ss_item_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE d_year IN (2000, 2001, 2002, 2003)
    GROUP BY d_date, i_item_sk, substr(i_item_desc, 1, 30)
    HAVING count(*) > 1),
  most_spent AS (
    SELECT max(spent) AS amount
    FROM (
      SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS spent
      FROM store_sales
        JOIN customer ON c_customer_sk = ss_customer_sk
        JOIN date_dim ON d_date_sk = ss_sold_date_sk
      WHERE d_year IN (2000, 2001, 2002, 2003)
      GROUP BY c_customer_sk) by_customer),
  best_customers AS (
    SELECT c_customer_sk AS buyer
    FROM store_sales
      JOIN customer ON c_customer_sk = ss_customer_sk
    GROUP BY c_customer_sk
    HAVING sum(ss_quantity * ss_sales_price) > 50 / 100.0 * (SELECT amount FROM most_spent))
SELECT c_last_name, c_first_name, sales
FROM (
    SELECT c_last_name, c_first_name, sum(ws_quantity * ws_list_price) AS sales
    FROM web_sales
      JOIN customer ON c_customer_sk = ws_bill_customer_sk
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
    WHERE ws_bill_customer_sk IN (SELECT buyer FROM best_customers)
      AND ws_item_sk IN (SELECT thing FROM sold_often) AND d_moy BETWEEN 2 AND 4 AND d_year = 2000
    GROUP BY c_first_name, c_last_name
    UNION ALL
    SELECT c_last_name, c_first_name, sum(cs_quantity * cs_list_price)
    FROM catalog_sales
      JOIN customer ON c_customer_sk = cs_bill_customer_sk
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
    WHERE cs_bill_customer_sk IN (SELECT buyer FROM best_customers)
      AND cs_item_sk IN (SELECT thing FROM sold_often) AND d_moy BETWEEN 2 AND 4 AND d_year = 2000
    GROUP BY c_first_name, c_last_name) paid
ORDER BY c_last_name, c_first_name, sales
LIMIT 100
