-- Sales, returns and profit of two weeks by channel and by seller.
WITH by_store AS (
    SELECT s_store_id AS place, sum(price) AS sales, sum(gain) AS gain, sum(refund) AS returns,
      sum(loss) AS loss
    FROM (
        SELECT sr_store_sk AS seller, sr_returned_date_sk AS day_sk, CAST(0 AS DECIMAL(7, 2)) AS price,
          CAST(0 AS DECIMAL(7, 2)) AS gain, sr_return_amt AS refund, sr_net_loss AS loss
        FROM store_returns
        UNION ALL
        SELECT ss_store_sk, ss_sold_date_sk, ss_ext_sales_price, ss_net_profit, CAST(0 AS DECIMAL(7, 2)),
          CAST(0 AS DECIMAL(7, 2))
        FROM store_sales) both_ways
      JOIN date_dim ON d_date_sk = day_sk
      JOIN store ON s_store_sk = seller
    WHERE d_date BETWEEN DATE '2000-02-10' AND DATE '2000-02-10' + INTERVAL 14 DAYS
    GROUP BY s_store_id),
  by_page AS (
    SELECT cp_catalog_page_id AS place, sum(price) AS sales, sum(gain) AS gain, sum(refund) AS returns,
      sum(loss) AS loss
    FROM (
        SELECT cr_catalog_page_sk AS seller, cr_returned_date_sk AS day_sk, CAST(0 AS DECIMAL(7, 2)) AS price,
          CAST(0 AS DECIMAL(7, 2)) AS gain, cr_return_amount AS refund, cr_net_loss AS loss
        FROM catalog_returns
        UNION ALL
        SELECT cs_catalog_page_sk, cs_sold_date_sk, cs_ext_sales_price, cs_net_profit,
          CAST(0 AS DECIMAL(7, 2)), CAST(0 AS DECIMAL(7, 2))
        FROM catalog_sales) both_ways
      JOIN date_dim ON d_date_sk = day_sk
      JOIN catalog_page ON cp_catalog_page_sk = seller
    WHERE d_date BETWEEN DATE '2000-02-10' AND DATE '2000-02-10' + INTERVAL 14 DAYS
    GROUP BY cp_catalog_page_id),
  by_site AS (
    SELECT web_site_id AS place, sum(price) AS sales, sum(gain) AS gain, sum(refund) AS returns,
      sum(loss) AS loss
    FROM (
        SELECT ws_web_site_sk AS seller, wr_returned_date_sk AS day_sk, CAST(0 AS DECIMAL(7, 2)) AS price,
          CAST(0 AS DECIMAL(7, 2)) AS gain, wr_return_amt AS refund, wr_net_loss AS loss
        FROM web_returns
          LEFT OUTER JOIN web_sales ON ws_order_number = wr_order_number AND ws_item_sk = wr_item_sk
        UNION ALL
        SELECT ws_web_site_sk, ws_sold_date_sk, ws_ext_sales_price, ws_net_profit, CAST(0 AS DECIMAL(7, 2)),
          CAST(0 AS DECIMAL(7, 2))
        FROM web_sales) both_ways
      JOIN date_dim ON d_date_sk = day_sk
      JOIN web_site ON web_site_sk = seller
    WHERE d_date BETWEEN DATE '2000-02-10' AND DATE '2000-02-10' + INTERVAL 14 DAYS
    GROUP BY web_site_id)
SELECT channel, id, sum(sales) AS sales, sum(returns) AS returns, sum(profit) AS profit
FROM (
    SELECT 'web channel' AS channel, concat('web_site', place) AS id, sales, returns, gain - loss AS profit
    FROM by_site
    UNION ALL
    SELECT 'catalog channel', concat('catalog_page', place), sales, returns, gain - loss FROM by_page
    UNION ALL
    SELECT 'store channel', concat('store', place), sales, returns, gain - loss FROM by_store) sellers
GROUP BY ROLLUP (channel, id)
ORDER BY channel, id, sales, returns, profit
LIMIT 100
