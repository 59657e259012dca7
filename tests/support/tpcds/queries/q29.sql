-- Quantities bought in a store, brought back within months, and bought by catalog within three years.
SELECT i_item_id, i_item_desc, s_store_id, s_store_name, sum(ss_quantity) AS store_sales_quantity,
  sum(sr_return_quantity) AS store_returns_quantity, sum(cs_quantity) AS catalog_sales_quantity
FROM store_sales
  JOIN store_returns ON sr_ticket_number = ss_ticket_number AND sr_item_sk = ss_item_sk
    AND sr_customer_sk = ss_customer_sk
  JOIN catalog_sales ON cs_item_sk = sr_item_sk AND cs_bill_customer_sk = sr_customer_sk
  JOIN date_dim sold ON sold.d_date_sk = ss_sold_date_sk
  JOIN date_dim returned ON returned.d_date_sk = sr_returned_date_sk
  JOIN date_dim again ON again.d_date_sk = cs_sold_date_sk
  JOIN item ON i_item_sk = ss_item_sk
  JOIN store ON s_store_sk = ss_store_sk
WHERE again.d_year IN (2000, 2001, 2002) AND returned.d_moy BETWEEN 2 AND 5 AND returned.d_year = 2000
  AND sold.d_moy = 2 AND sold.d_year = 2000
GROUP BY s_store_id, s_store_name, i_item_id, i_item_desc
ORDER BY i_item_id, i_item_desc, s_store_id, s_store_name, store_sales_quantity, store_returns_quantity,
  catalog_sales_quantity
LIMIT 100
