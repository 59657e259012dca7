-- Customers of three states who sent back to the catalog over 1.2 times the average of a state.
WITH sent_back AS (
  SELECT cr_returning_customer_sk AS sender, ca_state AS from_state, sum(cr_return_amt_inc_tax) AS total
  FROM catalog_returns
    JOIN customer_address ON ca_address_sk = cr_returning_addr_sk
    JOIN date_dim ON d_date_sk = cr_returned_date_sk
  WHERE d_year = 2000
  GROUP BY ca_state, cr_returning_customer_sk)
SELECT c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_number, ca_street_name,
  ca_street_type, ca_suite_number, ca_city, ca_county, ca_state, ca_zip, ca_country, ca_gmt_offset,
  ca_location_type, total
FROM sent_back mine
  JOIN customer ON c_customer_sk = mine.sender
  JOIN customer_address ON ca_address_sk = c_current_addr_sk
WHERE ca_state IN ('GA', 'TN', 'TX')
  AND mine.total > (
    SELECT 1.2 * avg(theirs.total) FROM sent_back theirs WHERE theirs.from_state = mine.from_state)
ORDER BY c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_number, ca_street_name,
  ca_street_type, ca_suite_number, ca_city, ca_county, ca_state, ca_zip, ca_country, ca_gmt_offset,
  ca_location_type, total
LIMIT 100
