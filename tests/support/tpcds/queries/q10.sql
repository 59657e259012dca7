-- Demographics of customers of four counties who bought in stores and also on the web or by catalog.
SELECT cd_gender, cd_marital_status, cd_education_status, count(*) AS cnt1, cd_purchase_estimate,
  count(*) AS cnt2, cd_credit_rating, count(*) AS cnt3, cd_dep_count, count(*) AS cnt4, cd_dep_employed_count,
  count(*) AS cnt5, cd_dep_college_count, count(*) AS cnt6
FROM customer buyer
  JOIN customer_demographics ON cd_demo_sk = buyer.c_current_cdemo_sk
  JOIN customer_address ON ca_address_sk = buyer.c_current_addr_sk
WHERE (EXISTS (
      SELECT 1
      FROM catalog_sales JOIN date_dim ON d_date_sk = cs_sold_date_sk
      WHERE cs_ship_customer_sk = buyer.c_customer_sk AND d_moy BETWEEN 1 AND 4 AND d_year = 2000)
    OR EXISTS (
      SELECT 1
      FROM web_sales JOIN date_dim ON d_date_sk = ws_sold_date_sk
      WHERE ws_bill_customer_sk = buyer.c_customer_sk AND d_moy BETWEEN 1 AND 4 AND d_year = 2000))
  AND EXISTS (
    SELECT 1
    FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE ss_customer_sk = buyer.c_customer_sk AND d_moy BETWEEN 1 AND 4 AND d_year = 2000)
  AND ca_county IN ('Rush County', 'Toole County', 'Walker County', 'Williamson County')
GROUP BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating,
  cd_dep_count, cd_dep_employed_count, cd_dep_college_count
ORDER BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating,
  cd_dep_count, cd_dep_employed_count, cd_dep_college_count
LIMIT 100
