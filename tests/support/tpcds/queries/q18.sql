-- Averages of catalog sales to women born in six months, by item and, added up, by county, state and country.
SELECT i_item_id, ca_country, ca_state, ca_county, avg(CAST(cs_quantity AS DECIMAL(12, 2))) AS agg1,
  avg(CAST(cs_list_price AS DECIMAL(12, 2))) AS agg2, avg(CAST(cs_coupon_amt AS DECIMAL(12, 2))) AS agg3,
  avg(CAST(cs_sales_price AS DECIMAL(12, 2))) AS agg4, avg(CAST(cs_net_profit AS DECIMAL(12, 2))) AS agg5,
  avg(CAST(c_birth_year AS DECIMAL(12, 2))) AS agg6,
  avg(CAST(billed.cd_dep_count AS DECIMAL(12, 2))) AS agg7
FROM catalog_sales
  JOIN item ON i_item_sk = cs_item_sk
  JOIN date_dim ON d_date_sk = cs_sold_date_sk
  JOIN customer_demographics billed ON billed.cd_demo_sk = cs_bill_cdemo_sk
  JOIN customer ON c_customer_sk = cs_bill_customer_sk
  JOIN customer_demographics nowadays ON nowadays.cd_demo_sk = c_current_cdemo_sk
  JOIN customer_address ON ca_address_sk = c_current_addr_sk
WHERE ca_state IN ('GA', 'IN', 'KY', 'OH', 'TN', 'VA') AND c_birth_month IN (1, 2, 6, 8, 9, 12)
  AND billed.cd_gender = 'F' AND d_year = 2000
GROUP BY ROLLUP (i_item_id, ca_country, ca_state, ca_county)
ORDER BY ca_country, ca_state, ca_county, i_item_id, agg1, agg2, agg3, agg4, agg5, agg6, agg7
LIMIT 100
