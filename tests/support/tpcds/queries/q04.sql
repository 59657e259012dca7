-- Customers whose spending by catalog grew faster than that in stores and than that on the web.
WITH spent AS (
    SELECT 'web' AS channel, d_year AS in_year, c_customer_id AS id, c_first_name AS first_name,
      c_last_name AS last_name, c_preferred_cust_flag AS flag, c_birth_country AS country, c_login AS login,
      c_email_address AS email,
      sum((ws_ext_list_price - ws_ext_wholesale_cost - ws_ext_discount_amt + ws_ext_sales_price) / 2) AS total
    FROM web_sales
      JOIN customer ON c_customer_sk = ws_bill_customer_sk
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
    GROUP BY d_year, c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country,
      c_login, c_email_address
    UNION ALL
    SELECT 'catalog', d_year, c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag,
      c_birth_country, c_login, c_email_address,
      sum((cs_ext_list_price - cs_ext_wholesale_cost - cs_ext_discount_amt + cs_ext_sales_price) / 2)
    FROM catalog_sales
      JOIN customer ON c_customer_sk = cs_bill_customer_sk
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
    GROUP BY d_year, c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country,
      c_login, c_email_address
    UNION ALL
    SELECT 'store', d_year, c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country,
      c_login, c_email_address,
      sum((ss_ext_list_price - ss_ext_wholesale_cost - ss_ext_discount_amt + ss_ext_sales_price) / 2)
    FROM store_sales
      JOIN customer ON c_customer_sk = ss_customer_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    GROUP BY d_year, c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country,
      c_login, c_email_address)
SELECT store_after.id, store_after.first_name, store_after.last_name, store_after.flag
FROM spent store_before
  JOIN spent store_after ON store_after.id = store_before.id
  JOIN spent web_before ON web_before.id = store_before.id
  JOIN spent web_after ON web_after.id = store_before.id
  JOIN spent catalog_before ON catalog_before.id = store_before.id
  JOIN spent catalog_after ON catalog_after.id = store_before.id
WHERE web_before.channel = 'web' AND web_before.in_year = 2000 AND web_before.total > 0
  AND web_after.channel = 'web' AND web_after.in_year = 2001
  AND catalog_before.channel = 'catalog' AND catalog_before.in_year = 2000 AND catalog_before.total > 0
  AND catalog_after.channel = 'catalog' AND catalog_after.in_year = 2001
  AND store_before.channel = 'store' AND store_before.in_year = 2000 AND store_before.total > 0
  AND store_after.channel = 'store' AND store_after.in_year = 2001
  AND CASE WHEN web_before.total > 0 THEN web_after.total / web_before.total END
    < CASE WHEN catalog_before.total > 0 THEN catalog_after.total / catalog_before.total END
  AND CASE WHEN store_before.total > 0 THEN store_after.total / store_before.total END
    < CASE WHEN catalog_before.total > 0 THEN catalog_after.total / catalog_before.total END
ORDER BY store_after.id, store_after.first_name, store_after.last_name, store_after.flag
LIMIT 100
