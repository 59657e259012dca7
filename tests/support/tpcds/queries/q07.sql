-- Average quantities and prices of items that married men bought in stores under promotions of two kinds.
SELECT i_item_id, avg(ss_quantity) AS agg1, avg(ss_list_price) AS agg2, avg(ss_coupon_amt) AS agg3,
  avg(ss_sales_price) AS agg4
FROM store_sales
  JOIN item ON i_item_sk = ss_item_sk
  JOIN promotion ON p_promo_sk = ss_promo_sk
  JOIN customer_demographics ON cd_demo_sk = ss_cdemo_sk
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
WHERE 'N' IN (p_channel_event, p_channel_email) AND cd_marital_status = 'M' AND cd_gender = 'M'
  AND d_year = 2000
GROUP BY i_item_id
ORDER BY i_item_id
LIMIT 100
