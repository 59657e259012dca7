-- Items of each channel that are among the ten first by the part that came back, in pieces or in money.
WITH from_stores AS (
    SELECT ss_item_sk AS item,
      CAST(sum(coalesce(sr_return_quantity, 0)) AS DECIMAL(15, 4))
        / CAST(sum(coalesce(ss_quantity, 0)) AS DECIMAL(15, 4)) AS by_pieces,
      CAST(sum(coalesce(sr_return_amt, 0)) AS DECIMAL(15, 4))
        / CAST(sum(coalesce(ss_net_paid, 0)) AS DECIMAL(15, 4)) AS by_money
    FROM store_sales
      LEFT OUTER JOIN store_returns ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE ss_quantity > 0 AND ss_net_paid > 0 AND ss_net_profit > 1 AND sr_return_amt > 100 AND d_year = 2000
    GROUP BY ss_item_sk),
  from_catalog AS (
    SELECT cs_item_sk AS item,
      CAST(sum(coalesce(cr_return_quantity, 0)) AS DECIMAL(15, 4))
        / CAST(sum(coalesce(cs_quantity, 0)) AS DECIMAL(15, 4)) AS by_pieces,
      CAST(sum(coalesce(cr_return_amount, 0)) AS DECIMAL(15, 4))
        / CAST(sum(coalesce(cs_net_paid, 0)) AS DECIMAL(15, 4)) AS by_money
    FROM catalog_sales
      LEFT OUTER JOIN catalog_returns ON cr_item_sk = cs_item_sk AND cr_order_number = cs_order_number
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
    WHERE cs_quantity > 0 AND cs_net_paid > 0 AND cs_net_profit > 1 AND cr_return_amount > 100
      AND d_year = 2000
    GROUP BY cs_item_sk),
  from_web AS (
    SELECT ws_item_sk AS item,
      CAST(sum(coalesce(wr_return_quantity, 0)) AS DECIMAL(15, 4))
        / CAST(sum(coalesce(ws_quantity, 0)) AS DECIMAL(15, 4)) AS by_pieces,
      CAST(sum(coalesce(wr_return_amt, 0)) AS DECIMAL(15, 4))
        / CAST(sum(coalesce(ws_net_paid, 0)) AS DECIMAL(15, 4)) AS by_money
    FROM web_sales
      LEFT OUTER JOIN web_returns ON wr_item_sk = ws_item_sk AND wr_order_number = ws_order_number
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
    WHERE ws_quantity > 0 AND ws_net_paid > 0 AND ws_net_profit > 1 AND wr_return_amt > 100 AND d_year = 2000
    GROUP BY ws_item_sk)
SELECT channel, item, return_ratio, return_rank, currency_rank
FROM (
    SELECT 'store' AS channel, item, by_pieces AS return_ratio, return_rank, currency_rank
    FROM (
      SELECT item, by_pieces, rank() OVER (ORDER BY by_pieces) AS return_rank,
        rank() OVER (ORDER BY by_money) AS currency_rank
      FROM from_stores) ranked
    WHERE currency_rank <= 10 OR return_rank <= 10
    UNION
    SELECT 'catalog', item, by_pieces, return_rank, currency_rank
    FROM (
      SELECT item, by_pieces, rank() OVER (ORDER BY by_pieces) AS return_rank,
        rank() OVER (ORDER BY by_money) AS currency_rank
      FROM from_catalog) ranked
    WHERE currency_rank <= 10 OR return_rank <= 10
    UNION
    SELECT 'web', item, by_pieces, return_rank, currency_rank
    FROM (
      SELECT item, by_pieces, rank() OVER (ORDER BY by_pieces) AS return_rank,
        rank() OVER (ORDER BY by_money) AS currency_rank
      FROM from_web) ranked
    WHERE currency_rank <= 10 OR return_rank <= 10) worst
ORDER BY channel, return_rank, currency_rank, item, return_ratio
LIMIT 100
