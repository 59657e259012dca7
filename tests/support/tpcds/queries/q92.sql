-- How much web customers of two makers were granted in discounts of over 1.3 times the item's average.
SELECT sum(ws_ext_discount_amt) AS `Excess Discount Amount`
FROM web_sales
  JOIN date_dim ON d_date_sk = ws_sold_date_sk
  JOIN item ON i_item_sk = ws_item_sk
WHERE ws_ext_discount_amt > (
    SELECT avg(usual.ws_ext_discount_amt) * 1.3
    FROM web_sales usual
      JOIN date_dim ON d_date_sk = usual.ws_sold_date_sk
    WHERE d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 90 DAYS
      AND usual.ws_item_sk = i_item_sk)
  AND d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 90 DAYS
  AND i_manufact_id IN (128, 436)
ORDER BY sum(ws_ext_discount_amt)
LIMIT 100
