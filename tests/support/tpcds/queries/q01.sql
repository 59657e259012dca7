-- Customers who brought back more than 1.2 times what customers of the same store did on average.
WITH returned AS (
  SELECT sr_customer_sk AS customer, sr_store_sk AS shop, sum(sr_return_amt) AS total
  FROM store_returns JOIN date_dim ON sr_returned_date_sk = d_date_sk
  WHERE d_year = 2000
  GROUP BY sr_customer_sk, sr_store_sk)
SELECT c_customer_id
FROM returned mine, store, customer
WHERE mine.total > (SELECT avg(others.total) * 1.2 FROM returned others WHERE others.shop = mine.shop)
  AND s_store_sk = mine.shop AND s_state = 'TN' AND c_customer_sk = mine.customer
ORDER BY c_customer_id
LIMIT 100
