-- Customers of some counties with tickets of 4 to 20 lines at the beginning or near the end of a month.
WITH tickets AS (
  SELECT ss_customer_sk AS buyer, ss_ticket_number, count(*) AS cnt
  FROM store_sales
    JOIN household_demographics ON hd_demo_sk = ss_hdemo_sk
    JOIN store ON s_store_sk = ss_store_sk
    JOIN date_dim ON d_date_sk = ss_sold_date_sk
  WHERE hd_buy_potential IN ('>10000', 'Unknown') AND hd_vehicle_count > 0
    AND CASE WHEN hd_vehicle_count > 0 THEN hd_dep_count / hd_vehicle_count END > 1.1
    AND s_county IN ('Barrow County', 'Rush County', 'Walker County', 'Williamson County', 'Ziebach County')
    AND d_year IN (1999, 2000, 2001) AND (d_dom BETWEEN 25 AND 28 OR d_dom BETWEEN 1 AND 13)
  GROUP BY ss_customer_sk, ss_ticket_number)
SELECT c_last_name, c_first_name, c_salutation, c_preferred_cust_flag, ss_ticket_number, cnt
FROM tickets
  JOIN customer ON c_customer_sk = buyer
WHERE cnt BETWEEN 4 AND 20
ORDER BY c_last_name, c_first_name, c_salutation, c_preferred_cust_flag DESC, ss_ticket_number
