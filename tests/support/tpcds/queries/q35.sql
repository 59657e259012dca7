-- Dependants of customers by state, who bought in stores and also on the web or by catalog.
SELECT ca_state, cd_gender, cd_marital_status, cd_dep_count, count(*) AS cnt1, min(cd_dep_count),
  max(cd_dep_count), avg(cd_dep_count), cd_dep_employed_count, count(*) AS cnt2, min(cd_dep_employed_count),
  max(cd_dep_employed_count), avg(cd_dep_employed_count), cd_dep_college_count, count(*) AS cnt3,
  min(cd_dep_college_count), max(cd_dep_college_count), avg(cd_dep_college_count)
FROM customer buyer
  JOIN customer_demographics ON cd_demo_sk = buyer.c_current_cdemo_sk
  JOIN customer_address ON ca_address_sk = buyer.c_current_addr_sk
WHERE (EXISTS (
      SELECT 1
      FROM catalog_sales JOIN date_dim ON d_date_sk = cs_sold_date_sk
      WHERE cs_ship_customer_sk = buyer.c_customer_sk AND d_qoy < 4 AND d_year = 2000)
    OR EXISTS (
      SELECT 1
      FROM web_sales JOIN date_dim ON d_date_sk = ws_sold_date_sk
      WHERE ws_bill_customer_sk = buyer.c_customer_sk AND d_qoy < 4 AND d_year = 2000))
  AND EXISTS (
    SELECT 1
    FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE ss_customer_sk = buyer.c_customer_sk AND d_qoy < 4 AND d_year = 2000)
GROUP BY ca_state, cd_gender, cd_marital_status, cd_dep_count, cd_dep_employed_count, cd_dep_college_count
ORDER BY ca_state, cd_gender, cd_marital_status, cd_dep_count, cd_dep_employed_count, cd_dep_college_count
LIMIT 100
