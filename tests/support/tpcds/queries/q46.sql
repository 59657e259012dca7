-- Tickets of weekends, bought in another city than the customer's, with coupons and profit.
WITH tickets AS (
  SELECT ss_customer_sk AS buyer, ss_ticket_number, ca_city AS bought_city, sum(ss_net_profit) AS profit,
    sum(ss_coupon_amt) AS amt
  FROM store_sales
    JOIN household_demographics ON hd_demo_sk = ss_hdemo_sk
    JOIN customer_address ON ca_address_sk = ss_addr_sk
    JOIN store ON s_store_sk = ss_store_sk
    JOIN date_dim ON d_date_sk = ss_sold_date_sk
  WHERE (hd_vehicle_count = 3 OR hd_dep_count = 4) AND d_dow IN (0, 6) AND d_year IN (1999, 2000, 2001)
    AND s_city IN ('Edgewood', 'Fairview', 'Midway', 'Oak Grove', 'Pleasant Hill')
  GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, ca_city)
SELECT c_last_name, c_first_name, home.ca_city, bought_city, ss_ticket_number, amt, profit
FROM tickets
  JOIN customer ON c_customer_sk = buyer
  JOIN customer_address home ON home.ca_address_sk = c_current_addr_sk
WHERE bought_city <> home.ca_city
ORDER BY c_last_name, c_first_name, home.ca_city, bought_city, ss_ticket_number, amt, profit
LIMIT 100
