-- Customers whose spending on the web grew faster than that in stores.
WITH spent AS (
    SELECT c_customer_id AS id, c_first_name AS first_name, c_last_name AS last_name, c_preferred_cust_flag AS flag,
      c_birth_country AS country, c_login AS login, c_email_address AS email, d_year AS in_year,
      sum(ss_ext_list_price - ss_ext_discount_amt) AS total, 's' AS channel
    FROM customer, store_sales, date_dim
    WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country, c_login,
      c_email_address, d_year
    UNION ALL
    SELECT c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country, c_login,
      c_email_address, d_year, sum(ws_ext_list_price - ws_ext_discount_amt), 'w'
    FROM customer, web_sales, date_dim
    WHERE c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country, c_login,
      c_email_address, d_year)
SELECT s2.id, s2.first_name, s2.last_name, s2.email
FROM spent s1, spent s2, spent w1, spent w2
WHERE s2.id = s1.id AND s1.id = w2.id AND s1.id = w1.id
  AND s1.channel = 's' AND w1.channel = 'w' AND s2.channel = 's' AND w2.channel = 'w'
  AND s1.in_year = 2000 AND s2.in_year = 2000 + 1 AND w1.in_year = 2000 AND w2.in_year = 2000 + 1
  AND s1.total > 0 AND w1.total > 0
  AND CASE WHEN w1.total > 0 THEN w2.total / w1.total ELSE 0.0 END
    > CASE WHEN s1.total > 0 THEN s2.total / s1.total ELSE 0.0 END
ORDER BY s2.id, s2.first_name, s2.last_name, s2.email
LIMIT 100
