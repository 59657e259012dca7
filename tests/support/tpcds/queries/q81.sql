-- Customers of a state who returned to the catalog more than 1.2 times what people of the same state do.
WITH ctr AS (
  SELECT cr_returning_customer_sk AS who, ca_state AS state, sum(cr_return_amt_inc_tax) AS total
  FROM catalog_returns, date_dim, customer_address
  WHERE cr_returned_date_sk = d_date_sk AND d_year = 2000 AND cr_returning_addr_sk = ca_address_sk
  GROUP BY cr_returning_customer_sk, ca_state)
SELECT c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_number, ca_street_name, ca_street_type,
  ca_suite_number, ca_city, ca_county, ca_state, ca_zip, ca_country, ca_gmt_offset, ca_location_type, total
FROM ctr ctr1, customer_address, customer
WHERE ctr1.total > (SELECT avg(total) * 1.2 FROM ctr ctr2 WHERE ctr1.state = ctr2.state)
  AND ca_address_sk = c_current_addr_sk AND ca_state IN ('GA', 'TN', 'TX') AND ctr1.who = c_customer_sk
ORDER BY c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_number, ca_street_name, ca_street_type,
  ca_suite_number, ca_city, ca_county, ca_state, ca_zip, ca_country, ca_gmt_offset, ca_location_type, total
LIMIT 100
