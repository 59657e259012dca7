-- Orders of the catalog that were sent from more than one warehouse and never came back.
SELECT count(DISTINCT cs_order_number) AS `order count`, sum(cs_ext_ship_cost) AS `total shipping cost`,
  sum(cs_net_profit) AS `total net profit`
FROM catalog_sales mine, date_dim, customer_address, call_center
WHERE d_date BETWEEN DATE '2000-02-01' AND (CAST('2000-02-01' AS DATE) + INTERVAL 60 DAYS)
  AND mine.cs_ship_date_sk = d_date_sk AND mine.cs_ship_addr_sk = ca_address_sk AND ca_state = 'TN'
  AND mine.cs_call_center_sk = cc_call_center_sk
  AND cc_county IN ('Williamson County', 'Walker County', 'Williamson County', 'Walker County', 'Rush County')
  AND EXISTS (
    SELECT * FROM catalog_sales other
    WHERE mine.cs_order_number = other.cs_order_number AND mine.cs_warehouse_sk <> other.cs_warehouse_sk)
  AND NOT EXISTS (SELECT * FROM catalog_returns back WHERE mine.cs_order_number = back.cr_order_number)
ORDER BY count(DISTINCT cs_order_number)
LIMIT 100
