-- How many pieces stores sold in a year to some demographics at some prices, into some states.
SELECT sum(ss_quantity)
FROM store_sales
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
  JOIN store ON s_store_sk = ss_store_sk
  CROSS JOIN customer_address
  CROSS JOIN customer_demographics
WHERE (ca_address_sk = ss_addr_sk AND ss_net_profit BETWEEN 5 AND 2500
      AND ca_state IN ('IN', 'MS', 'VA') AND ca_country = 'United States'
    OR ca_address_sk = ss_addr_sk AND ss_net_profit BETWEEN 0 AND 2000
      AND ca_state IN ('CA', 'OH', 'TX') AND ca_country = 'United States'
    OR ca_address_sk = ss_addr_sk AND ss_net_profit BETWEEN 15 AND 3000
      AND ca_state IN ('GA', 'KY', 'TN') AND ca_country = 'United States')
  AND (ss_cdemo_sk = cd_demo_sk AND ss_sales_price BETWEEN 5.00 AND 100.00
      AND cd_education_status = '2 yr Degree' AND cd_marital_status = 'S'
    OR ss_cdemo_sk = cd_demo_sk AND ss_sales_price BETWEEN 10.00 AND 150.00
      AND cd_education_status = '4 yr Degree' AND cd_marital_status = 'M'
    OR ss_cdemo_sk = cd_demo_sk AND ss_sales_price BETWEEN 15.00 AND 200.00
      AND cd_education_status = 'College' AND cd_marital_status = 'M')
  AND d_year = 2000
