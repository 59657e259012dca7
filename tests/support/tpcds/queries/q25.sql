-- Profit, loss and profit again of items bought, brought back, and bought by catalog.
SELECT i_item_id, i_item_desc, s_store_id, s_store_name, sum(ss_net_profit) AS store_sales_profit,
  sum(sr_net_loss) AS store_returns_loss, sum(cs_net_profit) AS catalog_sales_profit
FROM store_sales, store_returns, catalog_sales, date_dim sold, date_dim returned, date_dim again, store, item
WHERE sold.d_moy = 2 AND sold.d_year = 2000 AND sold.d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk
  AND s_store_sk = ss_store_sk AND ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk
  AND ss_ticket_number = sr_ticket_number AND sr_returned_date_sk = returned.d_date_sk
  AND returned.d_moy BETWEEN 2 AND 10 AND returned.d_year = 2000 AND sr_customer_sk = cs_bill_customer_sk
  AND sr_item_sk = cs_item_sk AND cs_sold_date_sk = again.d_date_sk AND again.d_moy BETWEEN 2 AND 10
  AND again.d_year = 2000
GROUP BY i_item_id, i_item_desc, s_store_id, s_store_name
ORDER BY i_item_id, i_item_desc, s_store_id, s_store_name, store_sales_profit, store_returns_loss,
  catalog_sales_profit
LIMIT 100
