-- How many catalog orders left from more than one warehouse and never came back, their shipping and profit.
SELECT count(DISTINCT cs_order_number) AS `order count`, sum(cs_ext_ship_cost) AS `total shipping cost`,
  sum(cs_net_profit) AS `total net profit`
FROM catalog_sales line
  JOIN call_center ON cc_call_center_sk = line.cs_call_center_sk
  JOIN customer_address ON ca_address_sk = line.cs_ship_addr_sk
  JOIN date_dim ON d_date_sk = line.cs_ship_date_sk
WHERE NOT EXISTS (SELECT 1 FROM catalog_returns WHERE cr_order_number = line.cs_order_number)
  AND EXISTS (
    SELECT 1
    FROM catalog_sales other
    WHERE other.cs_warehouse_sk <> line.cs_warehouse_sk AND other.cs_order_number = line.cs_order_number)
  AND cc_county IN ('Rush County', 'Walker County', 'Williamson County') AND ca_state = 'TN'
  AND d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 60 DAYS
ORDER BY count(DISTINCT cs_order_number)
LIMIT 100
