-- Profit of stores of a quarter in the regions of listed zip codes where several preferred customers live.
WITH preferred AS (
    SELECT substring(ca_zip, 1, 5) AS place
    FROM customer
      JOIN customer_address ON ca_address_sk = c_current_addr_sk
    WHERE c_preferred_cust_flag = 'Y'
    GROUP BY ca_zip
    HAVING count(*) > 2),
  listed AS (
    SELECT substring(ca_zip, 1, 5) AS place
    FROM customer_address
    WHERE substring(ca_zip, 1, 5) IN (
      '20548', '24128', '26231', '65084', '76232', '77556', '83926', '87816')),
  places AS (
    SELECT place FROM preferred
    INTERSECT
    SELECT place FROM listed)
SELECT s_store_name, sum(ss_net_profit)
FROM store_sales
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
  JOIN store ON s_store_sk = ss_store_sk
  JOIN places ON substring(places.place, 1, 2) = substring(s_zip, 1, 2)
WHERE d_year = 2000 AND d_qoy = 1
GROUP BY s_store_name
ORDER BY s_store_name
LIMIT 100
