-- Customers whose spending on the web grew faster from one year to the next than that in stores.
WITH spent AS (
    SELECT 'web' AS channel, d_year AS in_year, c_customer_id AS id, c_first_name AS first_name,
      c_last_name AS last_name, c_preferred_cust_flag AS flag, c_birth_country AS country, c_login AS login,
      c_email_address AS email, sum(ws_ext_list_price - ws_ext_discount_amt) AS total
    FROM web_sales
      JOIN customer ON c_customer_sk = ws_bill_customer_sk
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
    GROUP BY d_year, c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country,
      c_login, c_email_address
    UNION ALL
    SELECT 'store', d_year, c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country,
      c_login, c_email_address, sum(ss_ext_list_price - ss_ext_discount_amt)
    FROM store_sales
      JOIN customer ON c_customer_sk = ss_customer_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    GROUP BY d_year, c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country,
      c_login, c_email_address)
SELECT store_after.id, store_after.first_name, store_after.last_name, store_after.email
FROM spent store_before
  JOIN spent store_after ON store_after.id = store_before.id
  JOIN spent web_before ON web_before.id = store_before.id
  JOIN spent web_after ON web_after.id = store_before.id
WHERE web_before.channel = 'web' AND web_before.in_year = 2000 AND web_before.total > 0
  AND web_after.channel = 'web' AND web_after.in_year = 2001
  AND store_before.channel = 'store' AND store_before.in_year = 2000 AND store_before.total > 0
  AND store_after.channel = 'store' AND store_after.in_year = 2001
  AND CASE WHEN store_before.total > 0 THEN store_after.total / store_before.total ELSE 0.0 END
    < CASE WHEN web_before.total > 0 THEN web_after.total / web_before.total ELSE 0.0 END
ORDER BY store_after.id, store_after.first_name, store_after.last_name, store_after.email
LIMIT 100
