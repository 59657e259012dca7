-- Customers who came to spend relatively more by catalog than in stores and on the web.
WITH spent AS (
    SELECT c_customer_id AS id, c_first_name AS first_name, c_last_name AS last_name, c_preferred_cust_flag AS flag,
      c_birth_country AS country, c_login AS login, c_email_address AS email, d_year AS in_year,
      sum(((ss_ext_list_price - ss_ext_wholesale_cost - ss_ext_discount_amt) + ss_ext_sales_price) / 2) AS total,
      's' AS channel
    FROM customer JOIN store_sales ON c_customer_sk = ss_customer_sk JOIN date_dim ON ss_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country, c_login,
      c_email_address, d_year
    UNION ALL
    SELECT c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country, c_login,
      c_email_address, d_year,
      sum(((cs_ext_list_price - cs_ext_wholesale_cost - cs_ext_discount_amt) + cs_ext_sales_price) / 2), 'c'
    FROM customer JOIN catalog_sales ON c_customer_sk = cs_bill_customer_sk JOIN date_dim ON cs_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country, c_login,
      c_email_address, d_year
    UNION ALL
    SELECT c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country, c_login,
      c_email_address, d_year,
      sum(((ws_ext_list_price - ws_ext_wholesale_cost - ws_ext_discount_amt) + ws_ext_sales_price) / 2), 'w'
    FROM customer JOIN web_sales ON c_customer_sk = ws_bill_customer_sk JOIN date_dim ON ws_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_country, c_login,
      c_email_address, d_year)
SELECT s2.id, s2.first_name, s2.last_name, s2.flag
FROM spent s1, spent s2, spent c1, spent c2, spent w1, spent w2
WHERE s2.id = s1.id AND s1.id = c2.id AND s1.id = c1.id AND s1.id = w1.id AND s1.id = w2.id
  AND s1.channel = 's' AND c1.channel = 'c' AND w1.channel = 'w'
  AND s2.channel = 's' AND c2.channel = 'c' AND w2.channel = 'w'
  AND s1.in_year = 2000 AND s2.in_year = 2001 AND c1.in_year = 2000 AND c2.in_year = 2001
  AND w1.in_year = 2000 AND w2.in_year = 2001
  AND s1.total > 0 AND c1.total > 0 AND w1.total > 0
  AND CASE WHEN c1.total > 0 THEN c2.total / c1.total END > CASE WHEN s1.total > 0 THEN s2.total / s1.total END
  AND CASE WHEN c1.total > 0 THEN c2.total / c1.total END > CASE WHEN w1.total > 0 THEN w2.total / w1.total END
ORDER BY s2.id, s2.first_name, s2.last_name, s2.flag
LIMIT 100
