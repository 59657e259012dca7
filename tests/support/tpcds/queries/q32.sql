-- How much catalog customers of two makers were granted in discounts of over 1.3 times the item's average.
SELECT sum(cs_ext_discount_amt) AS `excess discount amount`
FROM catalog_sales
  JOIN date_dim ON d_date_sk = cs_sold_date_sk
  JOIN item ON i_item_sk = cs_item_sk
WHERE cs_ext_discount_amt > (
    SELECT avg(usual.cs_ext_discount_amt) * 1.3
    FROM catalog_sales usual
      JOIN date_dim ON d_date_sk = usual.cs_sold_date_sk
    WHERE d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 90 DAYS
      AND usual.cs_item_sk = i_item_sk)
  AND d_date BETWEEN DATE '2000-02-01' AND DATE '2000-02-01' + INTERVAL 90 DAYS
  AND i_manufact_id IN (128, 436)
LIMIT 100
