-- Tickets of weekends that were bought away from home.
SELECT c_last_name, c_first_name, current_addr.ca_city, bought_city, ss_ticket_number, amt, profit
FROM (
    SELECT ss_ticket_number, ss_customer_sk, ca_city AS bought_city, sum(ss_coupon_amt) AS amt,
      sum(ss_net_profit) AS profit
    FROM store_sales, date_dim, store, household_demographics, customer_address
    WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk
      AND ss_addr_sk = ca_address_sk AND (hd_dep_count = 4 OR hd_vehicle_count = 3) AND d_dow IN (6, 0)
      AND d_year IN (1999, 1999 + 1, 1999 + 2)
      AND s_city IN ('Midway', 'Fairview', 'Oak Grove', 'Edgewood', 'Pleasant Hill')
    GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, ca_city) dn, customer, customer_address current_addr
WHERE ss_customer_sk = c_customer_sk AND customer.c_current_addr_sk = current_addr.ca_address_sk
  AND current_addr.ca_city <> bought_city
ORDER BY c_last_name, c_first_name, current_addr.ca_city, bought_city, ss_ticket_number, amt, profit
LIMIT 100
