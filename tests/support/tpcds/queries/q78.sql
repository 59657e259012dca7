-- How many pieces customers bought in stores for each they bought elsewhere, where nothing came back.
WITH in_stores AS (
    SELECT d_year AS in_year, ss_item_sk AS thing, ss_customer_sk AS buyer, sum(ss_quantity) AS pieces,
      sum(ss_wholesale_cost) AS cost, sum(ss_sales_price) AS price
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
      LEFT JOIN store_returns ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number
    WHERE sr_ticket_number IS NULL
    GROUP BY ss_customer_sk, ss_item_sk, d_year),
  by_catalog AS (
    SELECT d_year AS in_year, cs_item_sk AS thing, cs_bill_customer_sk AS buyer, sum(cs_quantity) AS pieces,
      sum(cs_wholesale_cost) AS cost, sum(cs_sales_price) AS price
    FROM catalog_sales
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
      LEFT JOIN catalog_returns ON cr_item_sk = cs_item_sk AND cr_order_number = cs_order_number
    WHERE cr_order_number IS NULL
    GROUP BY cs_bill_customer_sk, cs_item_sk, d_year),
  on_web AS (
    SELECT d_year AS in_year, ws_item_sk AS thing, ws_bill_customer_sk AS buyer, sum(ws_quantity) AS pieces,
      sum(ws_wholesale_cost) AS cost, sum(ws_sales_price) AS price
    FROM web_sales
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
      LEFT JOIN web_returns ON wr_item_sk = ws_item_sk AND wr_order_number = ws_order_number
    WHERE wr_order_number IS NULL
    GROUP BY ws_bill_customer_sk, ws_item_sk, d_year)
SELECT in_stores.in_year AS ss_sold_year, in_stores.thing AS ss_item_sk, in_stores.buyer AS ss_customer_sk,
  round(in_stores.pieces / (coalesce(on_web.pieces, 0) + coalesce(by_catalog.pieces, 0)), 2) AS ratio,
  in_stores.pieces AS store_qty, in_stores.cost AS store_wholesale_cost, in_stores.price AS store_sales_price,
  coalesce(on_web.pieces, 0) + coalesce(by_catalog.pieces, 0) AS other_chan_qty,
  coalesce(on_web.cost, 0) + coalesce(by_catalog.cost, 0) AS other_chan_wholesale_cost,
  coalesce(on_web.price, 0) + coalesce(by_catalog.price, 0) AS other_chan_sales_price
FROM in_stores
  LEFT JOIN by_catalog ON by_catalog.buyer = in_stores.buyer AND by_catalog.thing = in_stores.thing
    AND by_catalog.in_year = in_stores.in_year
  LEFT JOIN on_web ON on_web.buyer = in_stores.buyer AND on_web.thing = in_stores.thing
    AND on_web.in_year = in_stores.in_year
WHERE in_stores.in_year = 2000 AND (coalesce(by_catalog.pieces, 0) > 0 OR coalesce(on_web.pieces, 0) > 0)
ORDER BY ss_sold_year, ss_item_sk, ss_customer_sk, store_qty DESC, store_wholesale_cost DESC,
  store_sales_price DESC, other_chan_qty, other_chan_wholesale_cost, other_chan_sales_price, ratio
LIMIT 100
