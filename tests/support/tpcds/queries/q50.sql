-- How many of the things that came back to a store in one month did so within 30 to 120 days of their sale.
SELECT s_store_name, s_company_id, s_street_number, s_street_name, s_street_type, s_suite_number, s_city,
  s_county, s_state, s_zip,
  sum(CASE WHEN days <= 30 THEN 1 ELSE 0 END) AS `30 days`,
  sum(CASE WHEN days > 30 AND days <= 60 THEN 1 ELSE 0 END) AS `31-60 days`,
  sum(CASE WHEN days > 60 AND days <= 90 THEN 1 ELSE 0 END) AS `61-90 days`,
  sum(CASE WHEN days > 90 AND days <= 120 THEN 1 ELSE 0 END) AS `91-120 days`,
  sum(CASE WHEN days > 120 THEN 1 ELSE 0 END) AS `>120 days`
FROM (
    SELECT ss_store_sk AS store_sk, sr_returned_date_sk - ss_sold_date_sk AS days
    FROM store_returns
      JOIN store_sales ON ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk
        AND ss_customer_sk = sr_customer_sk
      JOIN date_dim returned ON returned.d_date_sk = sr_returned_date_sk
      JOIN date_dim sold ON sold.d_date_sk = ss_sold_date_sk
    WHERE returned.d_moy = 3 AND returned.d_year = 2000) brought_back
  JOIN store ON s_store_sk = store_sk
GROUP BY s_store_name, s_company_id, s_street_number, s_street_name, s_street_type, s_suite_number, s_city,
  s_county, s_state, s_zip
ORDER BY s_store_name, s_company_id, s_street_number, s_street_name, s_street_type, s_suite_number, s_city,
  s_county, s_state, s_zip
LIMIT 100
