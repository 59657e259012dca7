-- Customers who brought back to a store of one state more than 1.2 times what its customers did on average.
WITH brought_back AS (
  SELECT sr_store_sk AS shop, sr_customer_sk AS person, sum(sr_return_amt) AS amount
  FROM store_returns
    JOIN date_dim ON d_date_sk = sr_returned_date_sk
  WHERE d_year = 2000
  GROUP BY sr_store_sk, sr_customer_sk)
SELECT c_customer_id
FROM brought_back mine
  JOIN customer ON c_customer_sk = mine.person
  JOIN store ON s_store_sk = mine.shop
WHERE s_state = 'TN'
  AND mine.amount > (SELECT 1.2 * avg(others.amount) FROM brought_back others WHERE others.shop = mine.shop)
ORDER BY c_customer_id
LIMIT 100
