-- Sales, returns and profit of 30 days by channel and by seller, of dear items not promoted on TV.
WITH by_store AS (
    SELECT s_store_id AS place, sum(ss_ext_sales_price) AS sales, sum(coalesce(sr_return_amt, 0)) AS returns,
      sum(ss_net_profit - coalesce(sr_net_loss, 0)) AS profit
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
      JOIN promotion ON p_promo_sk = ss_promo_sk
      JOIN item ON i_item_sk = ss_item_sk
      JOIN store ON s_store_sk = ss_store_sk
      LEFT OUTER JOIN store_returns ON sr_ticket_number = ss_ticket_number AND sr_item_sk = ss_item_sk
    WHERE i_current_price > 50 AND p_channel_tv = 'N'
      AND d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 30 DAYS
    GROUP BY s_store_id),
  by_page AS (
    SELECT cp_catalog_page_id AS place, sum(cs_ext_sales_price) AS sales,
      sum(coalesce(cr_return_amount, 0)) AS returns,
      sum(cs_net_profit - coalesce(cr_net_loss, 0)) AS profit
    FROM catalog_sales
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
      JOIN promotion ON p_promo_sk = cs_promo_sk
      JOIN item ON i_item_sk = cs_item_sk
      JOIN catalog_page ON cp_catalog_page_sk = cs_catalog_page_sk
      LEFT OUTER JOIN catalog_returns ON cr_order_number = cs_order_number AND cr_item_sk = cs_item_sk
    WHERE i_current_price > 50 AND p_channel_tv = 'N'
      AND d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 30 DAYS
    GROUP BY cp_catalog_page_id),
  by_site AS (
    SELECT web_site_id AS place, sum(ws_ext_sales_price) AS sales, sum(coalesce(wr_return_amt, 0)) AS returns,
      sum(ws_net_profit - coalesce(wr_net_loss, 0)) AS profit
    FROM web_sales
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
      JOIN promotion ON p_promo_sk = ws_promo_sk
      JOIN item ON i_item_sk = ws_item_sk
      JOIN web_site ON web_site_sk = ws_web_site_sk
      LEFT OUTER JOIN web_returns ON wr_order_number = ws_order_number AND wr_item_sk = ws_item_sk
    WHERE i_current_price > 50 AND p_channel_tv = 'N'
      AND d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 30 DAYS
    GROUP BY web_site_id)
SELECT channel, id, sum(sales) AS sales, sum(returns) AS returns, sum(profit) AS profit
FROM (
    SELECT 'web channel' AS channel, concat('web_site', place) AS id, sales, returns, profit FROM by_site
    UNION ALL
    SELECT 'catalog channel', concat('catalog_page', place), sales, returns, profit FROM by_page
    UNION ALL
    SELECT 'store channel', concat('store', place), sales, returns, profit FROM by_store) sellers
GROUP BY ROLLUP (channel, id)
ORDER BY channel, id, sales, returns, profit
LIMIT 100
