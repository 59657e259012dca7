-- Quantities of items that were bought in a store, brought back, and bought again by catalog.
-- Deviations are rounded: Spark's last digit depends on the order in which it reads rows.
SELECT i_item_id, i_item_desc, s_state,
  count(ss_quantity) AS store_sales_quantitycount, avg(ss_quantity) AS store_sales_quantityave,
  round(stddev_samp(ss_quantity), 6) AS store_sales_quantitystdev,
  round(stddev_samp(ss_quantity) / avg(ss_quantity), 6) AS store_sales_quantitycov,
  count(sr_return_quantity) AS store_returns_quantitycount,
  avg(sr_return_quantity) AS store_returns_quantityave,
  round(stddev_samp(sr_return_quantity), 6) AS store_returns_quantitystdev,
  round(stddev_samp(sr_return_quantity) / avg(sr_return_quantity), 6) AS store_returns_quantitycov,
  count(cs_quantity) AS catalog_sales_quantitycount, avg(cs_quantity) AS catalog_sales_quantityave,
  round(stddev_samp(cs_quantity), 6) AS catalog_sales_quantitystdev,
  round(stddev_samp(cs_quantity) / avg(cs_quantity), 6) AS catalog_sales_quantitycov
FROM store_sales
  JOIN store_returns ON sr_ticket_number = ss_ticket_number AND sr_item_sk = ss_item_sk
    AND sr_customer_sk = ss_customer_sk
  JOIN catalog_sales ON cs_item_sk = sr_item_sk AND cs_bill_customer_sk = sr_customer_sk
  JOIN date_dim sold ON sold.d_date_sk = ss_sold_date_sk
  JOIN date_dim returned ON returned.d_date_sk = sr_returned_date_sk
  JOIN date_dim again ON again.d_date_sk = cs_sold_date_sk
  JOIN item ON i_item_sk = ss_item_sk
  JOIN store ON s_store_sk = ss_store_sk
WHERE again.d_quarter_name IN ('2000Q1', '2000Q2', '2000Q3')
  AND returned.d_quarter_name IN ('2000Q1', '2000Q2', '2000Q3') AND sold.d_quarter_name = '2000Q1'
GROUP BY s_state, i_item_id, i_item_desc
ORDER BY i_item_id, i_item_desc, s_state
LIMIT 100
