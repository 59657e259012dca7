-- Customers of a city within a bracket of income, once for each time people like them brought something back.
SELECT c_customer_id AS customer_id,
  concat(coalesce(c_last_name, ''), ', ', coalesce(c_first_name, '')) AS customername
FROM customer
  JOIN customer_address ON ca_address_sk = c_current_addr_sk
  JOIN household_demographics ON hd_demo_sk = c_current_hdemo_sk
  JOIN income_band ON ib_income_band_sk = hd_income_band_sk
  JOIN customer_demographics ON cd_demo_sk = c_current_cdemo_sk
  JOIN store_returns ON sr_cdemo_sk = cd_demo_sk
WHERE ib_upper_bound <= 60000 AND ib_lower_bound >= 10000 AND ca_city = 'Midway'
ORDER BY customer_id, customername
LIMIT 100
