-- Tickets of the first two days of a month, bought in another city than the customer's, with taxes.
WITH tickets AS (
  SELECT ss_customer_sk AS buyer, ss_ticket_number, ca_city AS bought_city, sum(ss_ext_tax) AS extended_tax,
    sum(ss_ext_list_price) AS list_price, sum(ss_ext_sales_price) AS extended_price
  FROM store_sales
    JOIN household_demographics ON hd_demo_sk = ss_hdemo_sk
    JOIN customer_address ON ca_address_sk = ss_addr_sk
    JOIN store ON s_store_sk = ss_store_sk
    JOIN date_dim ON d_date_sk = ss_sold_date_sk
  WHERE (hd_vehicle_count = 3 OR hd_dep_count = 4) AND s_city IN ('Fairview', 'Midway', 'Oak Grove')
    AND d_dom BETWEEN 1 AND 2 AND d_year IN (1999, 2000, 2001)
  GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, ca_city)
SELECT c_last_name, c_first_name, home.ca_city, bought_city, ss_ticket_number, extended_price, extended_tax,
  list_price
FROM tickets
  JOIN customer ON c_customer_sk = buyer
  JOIN customer_address home ON home.ca_address_sk = c_current_addr_sk
WHERE bought_city <> home.ca_city
ORDER BY c_last_name, ss_ticket_number, c_first_name, home.ca_city, bought_city, extended_price, extended_tax,
  list_price
LIMIT 100
