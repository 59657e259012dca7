-- Average quantities and prices of items that men bought by catalog under promotions of two kinds.
SELECT i_item_id, avg(cs_quantity) AS agg1, avg(cs_list_price) AS agg2, avg(cs_coupon_amt) AS agg3,
  avg(cs_sales_price) AS agg4
FROM catalog_sales
  JOIN item ON i_item_sk = cs_item_sk
  JOIN promotion ON p_promo_sk = cs_promo_sk
  JOIN customer_demographics ON cd_demo_sk = cs_bill_cdemo_sk
  JOIN date_dim ON d_date_sk = cs_sold_date_sk
WHERE (p_channel_event = 'N' OR p_channel_email = 'N') AND cd_marital_status IN ('M', 'S') AND cd_gender = 'M'
  AND d_year = 2000
GROUP BY i_item_id
ORDER BY i_item_id
LIMIT 100
