-- The ten items of a store from one end of its average profits, beside the ten from the other end.
WITH profits AS (
    SELECT ss_item_sk AS item_sk, avg(ss_net_profit) AS profit
    FROM store_sales
    WHERE ss_store_sk = 1
    GROUP BY ss_item_sk
    HAVING avg(ss_net_profit) > 0.9 * (
      SELECT avg(ss_net_profit)
      FROM store_sales
      WHERE ss_addr_sk IS NULL AND ss_store_sk = 1
      GROUP BY ss_store_sk)),
  upwards AS (SELECT item_sk, rank() OVER (ORDER BY profit) AS rnk FROM profits),
  downwards AS (SELECT item_sk, rank() OVER (ORDER BY profit DESC) AS rnk FROM profits)
SELECT upwards.rnk, one.i_product_name AS best_performing, other.i_product_name AS worst_performing
FROM upwards
  JOIN downwards ON downwards.rnk = upwards.rnk
  JOIN item one ON one.i_item_sk = upwards.item_sk
  JOIN item other ON other.i_item_sk = downwards.item_sk
WHERE upwards.rnk <= 10 AND downwards.rnk <= 10
ORDER BY upwards.rnk, best_performing, worst_performing
LIMIT 100
