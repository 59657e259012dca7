-- Profits and losses of items bought in a store, brought back, and bought by catalog within a year.
SELECT i_item_id, i_item_desc, s_store_id, s_store_name, sum(ss_net_profit) AS store_sales_profit,
  sum(sr_net_loss) AS store_returns_loss, sum(cs_net_profit) AS catalog_sales_profit
FROM store_sales
  JOIN store_returns ON sr_ticket_number = ss_ticket_number AND sr_item_sk = ss_item_sk
    AND sr_customer_sk = ss_customer_sk
  JOIN catalog_sales ON cs_item_sk = sr_item_sk AND cs_bill_customer_sk = sr_customer_sk
  JOIN date_dim sold ON sold.d_date_sk = ss_sold_date_sk
  JOIN date_dim returned ON returned.d_date_sk = sr_returned_date_sk
  JOIN date_dim again ON again.d_date_sk = cs_sold_date_sk
  JOIN item ON i_item_sk = ss_item_sk
  JOIN store ON s_store_sk = ss_store_sk
WHERE again.d_moy BETWEEN 2 AND 10 AND again.d_year = 2000 AND returned.d_moy BETWEEN 2 AND 10
  AND returned.d_year = 2000 AND sold.d_moy = 2 AND sold.d_year = 2000
GROUP BY s_store_id, s_store_name, i_item_id, i_item_desc
ORDER BY i_item_id, i_item_desc, s_store_id, s_store_name, store_sales_profit, store_returns_loss,
  catalog_sales_profit
LIMIT 100
