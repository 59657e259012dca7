-- Sales, returns and profit of 30 days by channel and by seller, also of sellers to whom nothing came back.
WITH store_sold AS (
    SELECT s_store_sk AS place, sum(ss_ext_sales_price) AS sales, sum(ss_net_profit) AS gain
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
      JOIN store ON s_store_sk = ss_store_sk
    WHERE d_date BETWEEN DATE '2000-02-03' AND DATE '2000-02-03' + INTERVAL 30 DAYS
    GROUP BY s_store_sk),
  store_returned AS (
    SELECT s_store_sk AS place, sum(sr_return_amt) AS returns, sum(sr_net_loss) AS loss
    FROM store_returns
      JOIN date_dim ON d_date_sk = sr_returned_date_sk
      JOIN store ON s_store_sk = sr_store_sk
    WHERE d_date BETWEEN DATE '2000-02-03' AND DATE '2000-02-03' + INTERVAL 30 DAYS
    GROUP BY s_store_sk),
  catalog_sold AS (
    SELECT cs_call_center_sk AS place, sum(cs_ext_sales_price) AS sales, sum(cs_net_profit) AS gain
    FROM catalog_sales
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
    WHERE d_date BETWEEN DATE '2000-02-03' AND DATE '2000-02-03' + INTERVAL 30 DAYS
    GROUP BY cs_call_center_sk),
  catalog_returned AS (
    SELECT cr_call_center_sk AS place, sum(cr_return_amount) AS returns, sum(cr_net_loss) AS loss
    FROM catalog_returns
      JOIN date_dim ON d_date_sk = cr_returned_date_sk
    WHERE d_date BETWEEN DATE '2000-02-03' AND DATE '2000-02-03' + INTERVAL 30 DAYS
    GROUP BY cr_call_center_sk),
  web_sold AS (
    SELECT wp_web_page_sk AS place, sum(ws_ext_sales_price) AS sales, sum(ws_net_profit) AS gain
    FROM web_sales
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
      JOIN web_page ON wp_web_page_sk = ws_web_page_sk
    WHERE d_date BETWEEN DATE '2000-02-03' AND DATE '2000-02-03' + INTERVAL 30 DAYS
    GROUP BY wp_web_page_sk),
  web_returned AS (
    SELECT wp_web_page_sk AS place, sum(wr_return_amt) AS returns, sum(wr_net_loss) AS loss
    FROM web_returns
      JOIN date_dim ON d_date_sk = wr_returned_date_sk
      JOIN web_page ON wp_web_page_sk = wr_web_page_sk
    WHERE d_date BETWEEN DATE '2000-02-03' AND DATE '2000-02-03' + INTERVAL 30 DAYS
    GROUP BY wp_web_page_sk)
SELECT channel, id, sum(sales) AS sales, sum(returns) AS returns, sum(profit) AS profit
FROM (
    SELECT 'web channel' AS channel, web_sold.place AS id, sales, coalesce(returns, 0) AS returns,
      gain - coalesce(loss, 0) AS profit
    FROM web_sold LEFT JOIN web_returned ON web_returned.place = web_sold.place
    UNION ALL
    SELECT 'catalog channel', catalog_sold.place, sales, returns, gain - loss
    FROM catalog_sold CROSS JOIN catalog_returned
    UNION ALL
    SELECT 'store channel', store_sold.place, sales, coalesce(returns, 0), gain - coalesce(loss, 0)
    FROM store_sold LEFT JOIN store_returned ON store_returned.place = store_sold.place) sellers
GROUP BY ROLLUP (channel, id)
ORDER BY channel, id, sales, returns, profit
LIMIT 100
