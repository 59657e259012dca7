-- Discounts on the web that were more than 1.3 times the usual one of the same item.
SELECT sum(ws_ext_discount_amt) AS `Excess Discount Amount`
FROM web_sales, item, date_dim
WHERE i_manufact_id IN (128, 436) AND i_item_sk = ws_item_sk
  AND d_date BETWEEN CAST('2000-02-01' AS DATE) AND (CAST('2000-02-01' AS DATE) + INTERVAL 90 DAYS)
  AND d_date_sk = ws_sold_date_sk
  AND ws_ext_discount_amt > (
    SELECT 1.3 * avg(ws_ext_discount_amt)
    FROM web_sales, date_dim
    WHERE ws_item_sk = i_item_sk
      AND d_date BETWEEN CAST('2000-02-01' AS DATE) AND (CAST('2000-02-01' AS DATE) + INTERVAL 90 DAYS)
      AND d_date_sk = ws_sold_date_sk)
ORDER BY sum(ws_ext_discount_amt)
LIMIT 100
