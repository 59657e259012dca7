-- Items of each channel with the worst returns, by quantity or by money.
SELECT channel, item, return_ratio, return_rank, currency_rank
FROM (
  SELECT 'web' AS channel, item, return_ratio, return_rank, currency_rank
  FROM (
    SELECT item, return_ratio, currency_ratio, rank() OVER (ORDER BY return_ratio) AS return_rank,
      rank() OVER (ORDER BY currency_ratio) AS currency_rank
    FROM (
      SELECT ws_item_sk AS item,
        CAST(sum(coalesce(wr_return_quantity, 0)) AS DECIMAL(15, 4))
          / CAST(sum(coalesce(ws_quantity, 0)) AS DECIMAL(15, 4)) AS return_ratio,
        CAST(sum(coalesce(wr_return_amt, 0)) AS DECIMAL(15, 4))
          / CAST(sum(coalesce(ws_net_paid, 0)) AS DECIMAL(15, 4)) AS currency_ratio
      FROM web_sales LEFT OUTER JOIN web_returns ON ws_order_number = wr_order_number AND ws_item_sk = wr_item_sk,
        date_dim
      WHERE wr_return_amt > 100 AND ws_net_profit > 1 AND ws_net_paid > 0 AND ws_quantity > 0
        AND ws_sold_date_sk = d_date_sk AND d_year = 2000
      GROUP BY ws_item_sk) in_web) web
  WHERE return_rank <= 10 OR currency_rank <= 10
  UNION
  SELECT 'catalog', item, return_ratio, return_rank, currency_rank
  FROM (
    SELECT item, return_ratio, currency_ratio, rank() OVER (ORDER BY return_ratio) AS return_rank,
      rank() OVER (ORDER BY currency_ratio) AS currency_rank
    FROM (
      SELECT cs_item_sk AS item,
        CAST(sum(coalesce(cr_return_quantity, 0)) AS DECIMAL(15, 4))
          / CAST(sum(coalesce(cs_quantity, 0)) AS DECIMAL(15, 4)) AS return_ratio,
        CAST(sum(coalesce(cr_return_amount, 0)) AS DECIMAL(15, 4))
          / CAST(sum(coalesce(cs_net_paid, 0)) AS DECIMAL(15, 4)) AS currency_ratio
      FROM catalog_sales
        LEFT OUTER JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk, date_dim
      WHERE cr_return_amount > 100 AND cs_net_profit > 1 AND cs_net_paid > 0 AND cs_quantity > 0
        AND cs_sold_date_sk = d_date_sk AND d_year = 2000
      GROUP BY cs_item_sk) in_cat) catalog
  WHERE return_rank <= 10 OR currency_rank <= 10
  UNION
  SELECT 'store', item, return_ratio, return_rank, currency_rank
  FROM (
    SELECT item, return_ratio, currency_ratio, rank() OVER (ORDER BY return_ratio) AS return_rank,
      rank() OVER (ORDER BY currency_ratio) AS currency_rank
    FROM (
      SELECT ss_item_sk AS item,
        CAST(sum(coalesce(sr_return_quantity, 0)) AS DECIMAL(15, 4))
          / CAST(sum(coalesce(ss_quantity, 0)) AS DECIMAL(15, 4)) AS return_ratio,
        CAST(sum(coalesce(sr_return_amt, 0)) AS DECIMAL(15, 4))
          / CAST(sum(coalesce(ss_net_paid, 0)) AS DECIMAL(15, 4)) AS currency_ratio
      FROM store_sales
        LEFT OUTER JOIN store_returns ON ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk, date_dim
      WHERE sr_return_amt > 100 AND ss_net_profit > 1 AND ss_net_paid > 0 AND ss_quantity > 0
        AND ss_sold_date_sk = d_date_sk AND d_year = 2000
      GROUP BY ss_item_sk) in_store) store
  WHERE return_rank <= 10 OR currency_rank <= 10) every
ORDER BY channel, return_rank, currency_rank, item, return_ratio
LIMIT 100
