-- Why things came back to the web: averages by reason, for some demographics, prices and states.
SELECT substr(r_reason_desc, 1, 20), avg(ws_quantity), avg(wr_refunded_cash), avg(wr_fee)
FROM web_returns
  JOIN web_sales ON ws_order_number = wr_order_number AND ws_item_sk = wr_item_sk
  JOIN date_dim ON d_date_sk = ws_sold_date_sk
  JOIN web_page ON wp_web_page_sk = ws_web_page_sk
  JOIN reason ON r_reason_sk = wr_reason_sk
  JOIN customer_address ON ca_address_sk = wr_refunded_addr_sk
  JOIN customer_demographics sender ON sender.cd_demo_sk = wr_returning_cdemo_sk
  JOIN customer_demographics payee ON payee.cd_demo_sk = wr_refunded_cdemo_sk
WHERE (ws_net_profit BETWEEN -500 AND 2500 AND ca_state IN ('IN', 'MS', 'VA') AND ca_country = 'United States'
    OR ws_net_profit BETWEEN -1000 AND 2000 AND ca_state IN ('CA', 'OH', 'TN')
      AND ca_country = 'United States'
    OR ws_net_profit BETWEEN -1500 AND 3000 AND ca_state IN ('GA', 'KY', 'TX')
      AND ca_country = 'United States')
  AND (ws_sales_price BETWEEN 5.00 AND 100.00
      AND payee.cd_education_status = '4 yr Degree' AND sender.cd_education_status = payee.cd_education_status
      AND payee.cd_marital_status = 'S' AND sender.cd_marital_status = payee.cd_marital_status
    OR ws_sales_price BETWEEN 10.00 AND 150.00
      AND payee.cd_education_status = 'College' AND sender.cd_education_status = payee.cd_education_status
      AND payee.cd_marital_status = 'M' AND sender.cd_marital_status = payee.cd_marital_status
    OR ws_sales_price BETWEEN 15.00 AND 200.00
      AND payee.cd_education_status = 'Advanced Degree'
        AND sender.cd_education_status = payee.cd_education_status
      AND payee.cd_marital_status = 'M' AND sender.cd_marital_status = payee.cd_marital_status)
  AND d_year = 2000
GROUP BY r_reason_desc
ORDER BY substr(r_reason_desc, 1, 20), avg(ws_quantity), avg(wr_refunded_cash), avg(wr_fee)
LIMIT 100
