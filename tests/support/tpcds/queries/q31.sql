-- Counties where sales on the web grew more from one quarter to the next than those of stores.
WITH store_quarters AS (
    SELECT ca_county, d_year, d_qoy, sum(ss_ext_sales_price) AS sold
    FROM store_sales
      JOIN customer_address ON ca_address_sk = ss_addr_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    GROUP BY d_year, d_qoy, ca_county),
  web_quarters AS (
    SELECT ca_county, d_year, d_qoy, sum(ws_ext_sales_price) AS sold
    FROM web_sales
      JOIN customer_address ON ca_address_sk = ws_bill_addr_sk
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
    GROUP BY d_year, d_qoy, ca_county)
SELECT store_first.ca_county, store_first.d_year,
  web_second.sold / nullif(web_first.sold, 0) AS web_q1_q2_increase,
  store_second.sold / nullif(store_first.sold, 0) AS store_q1_q2_increase,
  web_third.sold / nullif(web_second.sold, 0) AS web_q2_q3_increase,
  store_third.sold / nullif(store_second.sold, 0) AS store_q2_q3_increase
FROM store_quarters store_first
  JOIN store_quarters store_second ON store_second.ca_county = store_first.ca_county
  JOIN store_quarters store_third ON store_third.ca_county = store_first.ca_county
  JOIN web_quarters web_first ON web_first.ca_county = store_first.ca_county
  JOIN web_quarters web_second ON web_second.ca_county = store_first.ca_county
  JOIN web_quarters web_third ON web_third.ca_county = store_first.ca_county
WHERE store_first.d_year = 2000 AND store_first.d_qoy = 1 AND web_first.d_year = 2000 AND web_first.d_qoy = 1
  AND store_second.d_year = 2000 AND store_second.d_qoy = 2 AND web_second.d_year = 2000
  AND web_second.d_qoy = 2
  AND store_third.d_year = 2000 AND store_third.d_qoy = 3 AND web_third.d_year = 2000 AND web_third.d_qoy = 3
  AND (CASE WHEN store_first.sold > 0 THEN store_second.sold / store_first.sold END
      < CASE WHEN web_first.sold > 0 THEN web_second.sold / web_first.sold END
    OR CASE WHEN store_second.sold > 0 THEN store_third.sold / store_second.sold END
      < CASE WHEN web_second.sold > 0 THEN web_third.sold / web_second.sold END)
ORDER BY store_first.ca_county
