-- How many customers bought in a store on a day on which they bought neither by catalog nor on the web.
WITH in_stores AS (
    SELECT DISTINCT c_last_name, c_first_name, d_date
    FROM store_sales
      JOIN customer ON c_customer_sk = ss_customer_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211),
  by_catalog AS (
    SELECT DISTINCT c_last_name, c_first_name, d_date
    FROM catalog_sales
      JOIN customer ON c_customer_sk = cs_bill_customer_sk
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211),
  on_web AS (
    SELECT DISTINCT c_last_name, c_first_name, d_date
    FROM web_sales
      JOIN customer ON c_customer_sk = ws_bill_customer_sk
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211)
SELECT count(*)
FROM (
  SELECT * FROM in_stores
  EXCEPT
  SELECT * FROM by_catalog
  EXCEPT
  SELECT * FROM on_web) only_in_stores
