-- How many web orders left from more than one warehouse and came back in part, their shipping and profit.
WITH split_orders AS (
  SELECT line.ws_order_number AS order_number
  FROM web_sales line
    JOIN web_sales other ON other.ws_order_number = line.ws_order_number
      AND other.ws_warehouse_sk <> line.ws_warehouse_sk)
SELECT count(DISTINCT ws_order_number) AS `order count`, sum(ws_ext_ship_cost) AS `total shipping cost`,
  sum(ws_net_profit) AS `total net profit`
FROM web_sales
  JOIN web_site ON web_site_sk = ws_web_site_sk
  JOIN customer_address ON ca_address_sk = ws_ship_addr_sk
  JOIN date_dim ON d_date_sk = ws_ship_date_sk
WHERE ws_order_number IN (
    SELECT wr_order_number
    FROM split_orders
      JOIN web_returns ON wr_order_number = order_number)
  AND ws_order_number IN (SELECT order_number FROM split_orders)
  AND web_company_name = 'pri' AND ca_state IN ('GA', 'TN')
  AND d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 60 DAYS
ORDER BY count(DISTINCT ws_order_number)
LIMIT 100
