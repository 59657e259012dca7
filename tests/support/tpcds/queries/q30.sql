-- Customers of a state who returned on the web more than 1.2 times what people of the same state do.
WITH returned AS (
  SELECT wr_returning_customer_sk AS who, ca_state AS state, sum(wr_return_amt) AS total
  FROM web_returns, date_dim, customer_address
  WHERE wr_returned_date_sk = d_date_sk AND d_year = 2000 AND wr_returning_addr_sk = ca_address_sk
  GROUP BY wr_returning_customer_sk, ca_state)
SELECT c_customer_id, c_salutation, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_day, c_birth_month,
  c_birth_year, c_birth_country, c_login, c_email_address, c_last_review_date_sk, total
FROM returned mine, customer_address, customer
WHERE mine.total > (SELECT avg(total) * 1.2 FROM returned theirs WHERE mine.state = theirs.state)
  AND ca_address_sk = c_current_addr_sk AND ca_state IN ('GA', 'TN') AND mine.who = c_customer_sk
ORDER BY c_customer_id, c_salutation, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_day, c_birth_month,
  c_birth_year, c_birth_country, c_login, c_email_address, c_last_review_date_sk, total
LIMIT 100
