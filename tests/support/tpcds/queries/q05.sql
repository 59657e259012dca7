-- Sales, returns and profit of two weeks by channel and by what sold.
WITH shops AS (
    SELECT s_store_id, sum(price) AS sales, sum(gain) AS profit, sum(back) AS returns, sum(loss) AS profit_loss
    FROM (
        SELECT ss_store_sk AS shop, ss_sold_date_sk AS day_sk, ss_ext_sales_price AS price, ss_net_profit AS gain,
          CAST(0 AS DECIMAL(7, 2)) AS back, CAST(0 AS DECIMAL(7, 2)) AS loss
        FROM store_sales
        UNION ALL
        SELECT sr_store_sk, sr_returned_date_sk, CAST(0 AS DECIMAL(7, 2)), CAST(0 AS DECIMAL(7, 2)), sr_return_amt,
          sr_net_loss
        FROM store_returns) both_ways, date_dim, store
    WHERE day_sk = d_date_sk AND d_date BETWEEN CAST('2000-02-10' AS DATE) AND DATE '2000-02-10' + INTERVAL 14 DAYS
      AND shop = s_store_sk
    GROUP BY s_store_id),
  pages AS (
    SELECT cp_catalog_page_id, sum(price) AS sales, sum(gain) AS profit, sum(back) AS returns,
      sum(loss) AS profit_loss
    FROM (
        SELECT cs_catalog_page_sk AS page, cs_sold_date_sk AS day_sk, cs_ext_sales_price AS price,
          cs_net_profit AS gain, CAST(0 AS DECIMAL(7, 2)) AS back, CAST(0 AS DECIMAL(7, 2)) AS loss
        FROM catalog_sales
        UNION ALL
        SELECT cr_catalog_page_sk, cr_returned_date_sk, CAST(0 AS DECIMAL(7, 2)), CAST(0 AS DECIMAL(7, 2)),
          cr_return_amount, cr_net_loss
        FROM catalog_returns) both_ways, date_dim, catalog_page
    WHERE day_sk = d_date_sk AND d_date BETWEEN CAST('2000-02-10' AS DATE) AND DATE '2000-02-10' + INTERVAL 14 DAYS
      AND page = cp_catalog_page_sk
    GROUP BY cp_catalog_page_id),
  sites AS (
    SELECT web_site_id, sum(price) AS sales, sum(gain) AS profit, sum(back) AS returns, sum(loss) AS profit_loss
    FROM (
        SELECT ws_web_site_sk AS site, ws_sold_date_sk AS day_sk, ws_ext_sales_price AS price, ws_net_profit AS gain,
          CAST(0 AS DECIMAL(7, 2)) AS back, CAST(0 AS DECIMAL(7, 2)) AS loss
        FROM web_sales
        UNION ALL
        SELECT ws_web_site_sk, wr_returned_date_sk, CAST(0 AS DECIMAL(7, 2)), CAST(0 AS DECIMAL(7, 2)),
          wr_return_amt, wr_net_loss
        FROM web_returns LEFT OUTER JOIN web_sales ON wr_item_sk = ws_item_sk AND wr_order_number = ws_order_number
      ) both_ways, date_dim, web_site
    WHERE day_sk = d_date_sk AND d_date BETWEEN CAST('2000-02-10' AS DATE) AND DATE '2000-02-10' + INTERVAL 14 DAYS
      AND site = web_site_sk
    GROUP BY web_site_id)
SELECT channel, id, sum(sales) AS sales, sum(returns) AS returns, sum(profit) AS profit
FROM (
    SELECT 'store channel' AS channel, concat('store', s_store_id) AS id, sales, returns,
      profit - profit_loss AS profit
    FROM shops
    UNION ALL
    SELECT 'catalog channel', concat('catalog_page', cp_catalog_page_id), sales, returns, profit - profit_loss
    FROM pages
    UNION ALL
    SELECT 'web channel', concat('web_site', web_site_id), sales, returns, profit - profit_loss FROM sites) every
GROUP BY ROLLUP (channel, id)
ORDER BY channel, id, sales, returns, profit
LIMIT 100
