-- What call centres lost in three months on what customers of some demographics sent back, the most first.
SELECT cc_call_center_id AS call_center, cc_name AS call_center_name, cc_manager AS manager,
  sum(cr_net_loss) AS returns_loss
FROM catalog_returns
  JOIN call_center ON cc_call_center_sk = cr_call_center_sk
  JOIN date_dim ON d_date_sk = cr_returned_date_sk
  JOIN customer ON c_customer_sk = cr_returning_customer_sk
  JOIN customer_address ON ca_address_sk = c_current_addr_sk
  JOIN household_demographics ON hd_demo_sk = c_current_hdemo_sk
  JOIN customer_demographics ON cd_demo_sk = c_current_cdemo_sk
WHERE (cd_education_status = 'College' AND cd_marital_status = 'M'
    OR cd_education_status = '4 yr Degree' AND cd_marital_status = 'S'
    OR cd_education_status = 'Advanced Degree' AND cd_marital_status = 'W')
  AND (hd_buy_potential LIKE '>1%' OR hd_buy_potential LIKE 'Unknown%')
  AND ca_gmt_offset = -5 AND d_moy BETWEEN 2 AND 4 AND d_year = 2000
GROUP BY cc_call_center_id, cc_name, cc_manager, cd_education_status, cd_marital_status
ORDER BY returns_loss DESC
