-- How many web orders left from more than one warehouse and never came back, their shipping and profit.
SELECT count(DISTINCT ws_order_number) AS `order count`, sum(ws_ext_ship_cost) AS `total shipping cost`,
  sum(ws_net_profit) AS `total net profit`
FROM web_sales line
  JOIN web_site ON web_site_sk = line.ws_web_site_sk
  JOIN customer_address ON ca_address_sk = line.ws_ship_addr_sk
  JOIN date_dim ON d_date_sk = line.ws_ship_date_sk
WHERE NOT EXISTS (SELECT 1 FROM web_returns WHERE wr_order_number = line.ws_order_number)
  AND EXISTS (
    SELECT 1
    FROM web_sales other
    WHERE other.ws_warehouse_sk <> line.ws_warehouse_sk AND other.ws_order_number = line.ws_order_number)
  AND web_company_name = 'pri' AND ca_state IN ('GA', 'TN')
  AND d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 60 DAYS
ORDER BY count(DISTINCT ws_order_number)
LIMIT 100
