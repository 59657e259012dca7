-- Items that brought a store at most a tenth of what its items did on average.
WITH earned AS (
    SELECT ss_store_sk AS store_sk, ss_item_sk AS item_sk, sum(ss_sales_price) AS revenue
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211
    GROUP BY ss_item_sk, ss_store_sk),
  usual AS (SELECT store_sk, avg(revenue) AS revenue FROM earned GROUP BY store_sk)
SELECT s_store_name, i_item_desc, earned.revenue, i_current_price, i_wholesale_cost, i_brand
FROM earned
  JOIN usual ON usual.store_sk = earned.store_sk
  JOIN item ON i_item_sk = earned.item_sk
  JOIN store ON s_store_sk = earned.store_sk
WHERE earned.revenue <= 0.1 * usual.revenue
ORDER BY s_store_name, i_item_desc, earned.revenue, i_current_price, i_wholesale_cost, i_brand
LIMIT 100
