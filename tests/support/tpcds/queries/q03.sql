-- What brands of one manufacturer sold in Novembers.
SELECT day.d_year, i_brand_id AS brand_id, i_brand AS brand, sum(ss_ext_sales_price) AS sum_agg
FROM date_dim day, store_sales, item
WHERE day.d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk AND i_manufact_id = 128 AND day.d_moy = 11
GROUP BY day.d_year, i_brand, i_brand_id
ORDER BY day.d_year, sum_agg DESC, brand_id, brand
LIMIT 100
