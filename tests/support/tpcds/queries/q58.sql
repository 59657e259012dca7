-- Items of which, in the week of one day, no channel sold more than ten times what another did.
WITH that_week AS (
    SELECT d_date
    FROM date_dim
    WHERE d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_date = '2000-02-15')),
  in_stores AS (
    SELECT i_item_id AS item_id, sum(ss_ext_sales_price) AS revenue
    FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk JOIN item ON i_item_sk = ss_item_sk
    WHERE d_date IN (SELECT d_date FROM that_week)
    GROUP BY i_item_id),
  by_catalog AS (
    SELECT i_item_id AS item_id, sum(cs_ext_sales_price) AS revenue
    FROM catalog_sales JOIN date_dim ON d_date_sk = cs_sold_date_sk JOIN item ON i_item_sk = cs_item_sk
    WHERE d_date IN (SELECT d_date FROM that_week)
    GROUP BY i_item_id),
  on_web AS (
    SELECT i_item_id AS item_id, sum(ws_ext_sales_price) AS revenue
    FROM web_sales JOIN date_dim ON d_date_sk = ws_sold_date_sk JOIN item ON i_item_sk = ws_item_sk
    WHERE d_date IN (SELECT d_date FROM that_week)
    GROUP BY i_item_id),
  everywhere AS (
    SELECT in_stores.item_id, in_stores.revenue AS ss_item_rev, by_catalog.revenue AS cs_item_rev,
      on_web.revenue AS ws_item_rev, (in_stores.revenue + by_catalog.revenue + on_web.revenue) / 3 AS average
    FROM in_stores
      JOIN by_catalog ON by_catalog.item_id = in_stores.item_id
      JOIN on_web ON on_web.item_id = in_stores.item_id
    WHERE in_stores.revenue + by_catalog.revenue + on_web.revenue > 0)
SELECT item_id, ss_item_rev, ss_item_rev / average * 100 AS ss_dev, cs_item_rev,
  cs_item_rev / average * 100 AS cs_dev, ws_item_rev, ws_item_rev / average * 100 AS ws_dev, average
FROM everywhere
WHERE ws_item_rev BETWEEN 0.1 * cs_item_rev AND 10 * cs_item_rev
  AND ws_item_rev BETWEEN 0.1 * ss_item_rev AND 10 * ss_item_rev
  AND cs_item_rev BETWEEN 0.1 * ws_item_rev AND 10 * ws_item_rev
  AND cs_item_rev BETWEEN 0.1 * ss_item_rev AND 10 * ss_item_rev
  AND ss_item_rev BETWEEN 0.1 * ws_item_rev AND 10 * ws_item_rev
  AND ss_item_rev BETWEEN 0.1 * cs_item_rev AND 10 * cs_item_rev
ORDER BY item_id, ss_item_rev, cs_item_rev, ws_item_rev
LIMIT 100
