-- Customers living in two states who sent back to the web over 1.2 times the average of a state.
WITH sent_back AS (
  SELECT wr_returning_customer_sk AS sender, ca_state AS from_state, sum(wr_return_amt) AS total
  FROM web_returns
    JOIN customer_address ON ca_address_sk = wr_returning_addr_sk
    JOIN date_dim ON d_date_sk = wr_returned_date_sk
  WHERE d_year = 2000
  GROUP BY ca_state, wr_returning_customer_sk)
SELECT c_customer_id, c_salutation, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_day,
  c_birth_month, c_birth_year, c_birth_country, c_login, c_email_address, c_last_review_date_sk, total
FROM sent_back mine
  JOIN customer ON c_customer_sk = mine.sender
  JOIN customer_address ON ca_address_sk = c_current_addr_sk
WHERE ca_state IN ('GA', 'TN')
  AND mine.total > (
    SELECT 1.2 * avg(theirs.total) FROM sent_back theirs WHERE theirs.from_state = mine.from_state)
ORDER BY c_customer_id, c_salutation, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_day,
  c_birth_month, c_birth_year, c_birth_country, c_login, c_email_address, c_last_review_date_sk, total
LIMIT 100
