-- How customers who ordered fiction spread over brackets of what they later spent in stores near them.
WITH readers AS (
    SELECT DISTINCT c_customer_sk, c_current_addr_sk
    FROM (
        SELECT ws_bill_customer_sk AS buyer, ws_item_sk AS thing, ws_sold_date_sk AS day_sk FROM web_sales
        UNION ALL
        SELECT cs_bill_customer_sk, cs_item_sk, cs_sold_date_sk FROM catalog_sales) ordered
      JOIN customer ON c_customer_sk = buyer
      JOIN item ON i_item_sk = thing
      JOIN date_dim ON d_date_sk = day_sk
    WHERE d_year = 2000 AND d_moy = 2 AND i_class = 'fiction' AND i_category = 'Books'),
  spent_nearby AS (
    SELECT c_customer_sk, sum(ss_ext_sales_price) AS amount
    FROM readers
      JOIN customer_address ON ca_address_sk = c_current_addr_sk
      JOIN store ON s_state = ca_state AND s_county = ca_county
      JOIN store_sales ON ss_customer_sk = c_customer_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE d_month_seq >= (SELECT DISTINCT d_month_seq + 1 FROM date_dim WHERE d_moy = 2 AND d_year = 2000)
      AND d_month_seq <= (SELECT DISTINCT d_month_seq + 10 FROM date_dim WHERE d_moy = 2 AND d_year = 2000)
    GROUP BY c_customer_sk)
SELECT segment, count(*) AS num_customers, segment * 50 AS segment_base
FROM (SELECT CAST(amount / 50 AS INT) AS segment FROM spent_nearby) brackets
GROUP BY segment
ORDER BY segment, num_customers, segment_base
LIMIT 100
