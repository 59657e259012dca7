-- Coupons and profit of tickets of Mondays in middle-sized stores, by families with many dependants or cars.
WITH tickets AS (
  SELECT ss_customer_sk AS buyer, ss_ticket_number, s_city, sum(ss_net_profit) AS profit,
    sum(ss_coupon_amt) AS amt
  FROM store_sales
    JOIN household_demographics ON hd_demo_sk = ss_hdemo_sk
    JOIN store ON s_store_sk = ss_store_sk
    JOIN date_dim ON d_date_sk = ss_sold_date_sk
  WHERE (hd_vehicle_count > 2 OR hd_dep_count = 6) AND s_number_employees BETWEEN 200 AND 295
    AND d_year IN (1999, 2000, 2001) AND d_dow = 1
  GROUP BY s_city, ss_customer_sk, ss_addr_sk, ss_ticket_number)
SELECT c_last_name, c_first_name, substr(s_city, 1, 30), ss_ticket_number, amt, profit
FROM tickets
  JOIN customer ON c_customer_sk = buyer
ORDER BY c_last_name, c_first_name, substr(s_city, 1, 30), profit, ss_ticket_number, amt
LIMIT 100
