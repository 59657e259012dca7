-- Catalog orders larger than a warehouse's stock of their week and sent late, with and without promotion.
SELECT i_item_desc, w_warehouse_name, sold.d_week_seq, 
  sum(CASE WHEN p_promo_sk IS NULL THEN 1 ELSE 0 END) AS no_promo,
  sum(CASE WHEN p_promo_sk IS NULL THEN 0 ELSE 1 END) AS promo, count(*) AS total_cnt
FROM catalog_sales
  JOIN item ON i_item_sk = cs_item_sk
  JOIN household_demographics ON hd_demo_sk = cs_bill_hdemo_sk
  JOIN customer_demographics ON cd_demo_sk = cs_bill_cdemo_sk
  JOIN date_dim sold ON sold.d_date_sk = cs_sold_date_sk
  JOIN date_dim shipped ON shipped.d_date_sk = cs_ship_date_sk
  JOIN inventory ON inv_item_sk = cs_item_sk
  JOIN date_dim counted ON counted.d_date_sk = inv_date_sk
  JOIN warehouse ON w_warehouse_sk = inv_warehouse_sk
  LEFT OUTER JOIN catalog_returns ON cr_order_number = cs_order_number AND cr_item_sk = cs_item_sk
  LEFT OUTER JOIN promotion ON p_promo_sk = cs_promo_sk
WHERE inv_quantity_on_hand < cs_quantity AND counted.d_week_seq = sold.d_week_seq
  AND sold.d_date + INTERVAL 5 DAYS < shipped.d_date AND sold.d_year = 2000
  AND cd_marital_status IN ('M', 'S') AND hd_buy_potential IN ('>10000', 'Unknown')
GROUP BY i_item_desc, w_warehouse_name, sold.d_week_seq
ORDER BY total_cnt DESC, i_item_desc, w_warehouse_name, d_week_seq, no_promo, promo
LIMIT 100
