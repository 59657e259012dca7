-- Days by which the web had sold more of an item since the start of the year than stores had.
WITH on_web AS (
    SELECT ws_item_sk AS item_sk, d_date,
      sum(sum(ws_sales_price)) OVER (
        PARTITION BY ws_item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far
    FROM web_sales
      JOIN date_dim ON d_date_sk = ws_sold_date_sk
    WHERE ws_item_sk IS NOT NULL AND d_month_seq BETWEEN 1200 AND 1211
    GROUP BY ws_item_sk, d_date),
  in_stores AS (
    SELECT ss_item_sk AS item_sk, d_date,
      sum(sum(ss_sales_price)) OVER (
        PARTITION BY ss_item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE ss_item_sk IS NOT NULL AND d_month_seq BETWEEN 1200 AND 1211
    GROUP BY ss_item_sk, d_date),
  side_by_side AS (
    SELECT coalesce(on_web.item_sk, in_stores.item_sk) AS item_sk,
      coalesce(on_web.d_date, in_stores.d_date) AS d_date,
      on_web.so_far AS web_sales, in_stores.so_far AS store_sales
    FROM on_web
      FULL OUTER JOIN in_stores ON in_stores.d_date = on_web.d_date AND in_stores.item_sk = on_web.item_sk),
  highest AS (
    SELECT item_sk, d_date, web_sales, store_sales,
      max(web_sales) OVER (
        PARTITION BY item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS web_cumulative,
      max(store_sales) OVER (
        PARTITION BY item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS store_cumulative
    FROM side_by_side)
SELECT *
FROM highest
WHERE store_cumulative < web_cumulative
ORDER BY item_sk, d_date, web_sales, store_sales
LIMIT 100
