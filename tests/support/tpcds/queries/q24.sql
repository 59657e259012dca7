-- Customers born abroad who paid much in their own zip code for things of two colours, some brought back.
WITH returned AS (
  SELECT c_last_name, c_first_name, s_store_name, i_color, sum(ss_net_paid) AS amount
  FROM store_returns
    JOIN store_sales ON ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number
    JOIN item ON i_item_sk = ss_item_sk
    JOIN customer ON c_customer_sk = ss_customer_sk
    JOIN customer_address ON ca_address_sk = c_current_addr_sk
    JOIN store ON s_store_sk = ss_store_sk AND s_zip = ca_zip
  WHERE s_market_id IN (5, 8) AND upper(ca_country) <> c_birth_country
  GROUP BY s_store_name, s_state, ca_state, c_last_name, c_first_name, i_color, i_size, i_units, i_manager_id,
    i_current_price)
SELECT c_last_name, c_first_name, s_store_name, sum(amount) AS paid
FROM returned
WHERE i_color IN ('blanched', 'slate')
GROUP BY s_store_name, c_last_name, c_first_name
HAVING sum(amount) > (SELECT avg(amount) * 0.05 FROM returned)
ORDER BY c_last_name, c_first_name, s_store_name
