-- Customers whose payments on the web grew faster from one year to the next than those in stores.
WITH paid AS (
  SELECT 'web' AS channel, d_year AS in_year, c_customer_id AS id, c_first_name AS first_name,
    c_last_name AS last_name, sum(ws_net_paid) AS total
  FROM web_sales
    JOIN date_dim ON d_date_sk = ws_sold_date_sk
    JOIN customer ON c_customer_sk = ws_bill_customer_sk
  WHERE d_year IN (2000, 2001)
  GROUP BY d_year, c_customer_id, c_first_name, c_last_name
  UNION ALL
  SELECT 'store', d_year, c_customer_id, c_first_name, c_last_name, sum(ss_net_paid)
  FROM store_sales
    JOIN date_dim ON d_date_sk = ss_sold_date_sk
    JOIN customer ON c_customer_sk = ss_customer_sk
  WHERE d_year IN (2000, 2001)
  GROUP BY d_year, c_customer_id, c_first_name, c_last_name)
SELECT store_after.id, store_after.first_name, store_after.last_name
FROM paid store_before
  JOIN paid store_after ON store_after.id = store_before.id
  JOIN paid web_before ON web_before.id = store_before.id
  JOIN paid web_after ON web_after.id = store_before.id
WHERE store_before.channel = 'store' AND store_before.in_year = 2000 AND store_before.total > 0
  AND store_after.channel = 'store' AND store_after.in_year = 2001
  AND web_before.channel = 'web' AND web_before.in_year = 2000 AND web_before.total > 0
  AND web_after.channel = 'web' AND web_after.in_year = 2001
  AND CASE WHEN store_before.total > 0 THEN store_after.total / store_before.total END
    < CASE WHEN web_before.total > 0 THEN web_after.total / web_before.total END
ORDER BY 2, 1, 3
LIMIT 100
