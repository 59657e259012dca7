-- Averages over a year of store sales to some demographics at some prices, into some states.
SELECT avg(ss_quantity), avg(ss_ext_sales_price), avg(ss_ext_wholesale_cost), sum(ss_ext_wholesale_cost)
FROM store_sales
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
  JOIN store ON s_store_sk = ss_store_sk
  CROSS JOIN customer_address
  CROSS JOIN household_demographics
  CROSS JOIN customer_demographics
WHERE (ca_address_sk = ss_addr_sk AND ss_net_profit BETWEEN -500 AND 2500
      AND ca_state IN ('CA', 'MS', 'VA') AND ca_country = 'United States'
    OR ca_address_sk = ss_addr_sk AND ss_net_profit BETWEEN -1000 AND 2000
      AND ca_state IN ('OH', 'TN', 'TX') AND ca_country = 'United States'
    OR ca_address_sk = ss_addr_sk AND ss_net_profit BETWEEN -1500 AND 3000
      AND ca_state IN ('GA', 'IN', 'KY') AND ca_country = 'United States')
  AND (ss_cdemo_sk = cd_demo_sk AND cd_education_status = '4 yr Degree' AND cd_marital_status = 'S'
      AND ss_hdemo_sk = hd_demo_sk AND hd_dep_count = 4 AND ss_sales_price BETWEEN 5.00 AND 100.00
    OR ss_cdemo_sk = cd_demo_sk AND cd_education_status = 'College' AND cd_marital_status = 'M'
      AND ss_hdemo_sk = hd_demo_sk AND hd_dep_count = 3 AND ss_sales_price BETWEEN 10.00 AND 50.00
    OR ss_cdemo_sk = cd_demo_sk AND cd_education_status = '4 yr Degree' AND cd_marital_status = 'M'
      AND ss_hdemo_sk = hd_demo_sk AND hd_dep_count = 4 AND ss_sales_price BETWEEN 15.00 AND 200.00)
  AND d_year = 2000
