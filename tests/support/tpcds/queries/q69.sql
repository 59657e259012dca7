-- Demographics of customers of five states who bought in stores, but neither on the web nor by catalog.
SELECT cd_gender, cd_marital_status, cd_education_status, count(*) AS cnt1, cd_purchase_estimate,
  count(*) AS cnt2, cd_credit_rating, count(*) AS cnt3
FROM customer buyer
  JOIN customer_demographics ON cd_demo_sk = buyer.c_current_cdemo_sk
  JOIN customer_address ON ca_address_sk = buyer.c_current_addr_sk
WHERE NOT EXISTS (
    SELECT 1
    FROM catalog_sales JOIN date_dim ON d_date_sk = cs_sold_date_sk
    WHERE cs_ship_customer_sk = buyer.c_customer_sk AND d_moy BETWEEN 5 AND 7 AND d_year = 2000)
  AND NOT EXISTS (
    SELECT 1
    FROM web_sales JOIN date_dim ON d_date_sk = ws_sold_date_sk
    WHERE ws_bill_customer_sk = buyer.c_customer_sk AND d_moy BETWEEN 5 AND 7 AND d_year = 2000)
  AND EXISTS (
    SELECT 1
    FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE ss_customer_sk = buyer.c_customer_sk AND d_moy BETWEEN 5 AND 7 AND d_year = 2000)
  AND ca_state IN ('GA', 'KY', 'OH', 'TN', 'TX')
GROUP BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating
ORDER BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating
LIMIT 100
