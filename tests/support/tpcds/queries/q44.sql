-- The ten best and the ten worst items of a store, side by side.
SELECT best.rnk, i1.i_product_name AS best_performing, i2.i_product_name AS worst_performing
FROM (
    SELECT item_sk, rank() OVER (ORDER BY rank_col ASC) AS rnk
    FROM (
      SELECT ss_item_sk AS item_sk, avg(ss_net_profit) AS rank_col
      FROM store_sales
      WHERE ss_store_sk = 1
      GROUP BY ss_item_sk
      HAVING avg(ss_net_profit) > 0.9 * (
        SELECT avg(ss_net_profit) AS rank_col
        FROM store_sales
        WHERE ss_store_sk = 1 AND ss_addr_sk IS NULL
        GROUP BY ss_store_sk)) v1) best,
  (
    SELECT item_sk, rank() OVER (ORDER BY rank_col DESC) AS rnk
    FROM (
      SELECT ss_item_sk AS item_sk, avg(ss_net_profit) AS rank_col
      FROM store_sales
      WHERE ss_store_sk = 1
      GROUP BY ss_item_sk
      HAVING avg(ss_net_profit) > 0.9 * (
        SELECT avg(ss_net_profit) AS rank_col
        FROM store_sales
        WHERE ss_store_sk = 1 AND ss_addr_sk IS NULL
        GROUP BY ss_store_sk)) v2) worst, item i1, item i2
WHERE best.rnk < 11 AND worst.rnk < 11 AND best.rnk = worst.rnk AND i1.i_item_sk = best.item_sk
  AND i2.i_item_sk = worst.item_sk
ORDER BY best.rnk, best_performing, worst_performing
LIMIT 100
