-- How much of each item came back in five weeks, in each of the three channels and on average.
WITH those_weeks AS (
    SELECT d_date
    FROM date_dim
    WHERE d_week_seq IN (
      SELECT d_week_seq
      FROM date_dim
      WHERE d_date IN ('2000-02-10', '2000-02-20', '2000-02-29', '2000-03-10', '2000-03-20'))),
  to_stores AS (
    SELECT i_item_id AS item_id, sum(sr_return_quantity) AS quantity
    FROM store_returns
      JOIN date_dim ON d_date_sk = sr_returned_date_sk
      JOIN item ON i_item_sk = sr_item_sk
    WHERE d_date IN (SELECT d_date FROM those_weeks)
    GROUP BY i_item_id),
  to_catalog AS (
    SELECT i_item_id AS item_id, sum(cr_return_quantity) AS quantity
    FROM catalog_returns
      JOIN date_dim ON d_date_sk = cr_returned_date_sk
      JOIN item ON i_item_sk = cr_item_sk
    WHERE d_date IN (SELECT d_date FROM those_weeks)
    GROUP BY i_item_id),
  to_web AS (
    SELECT i_item_id AS item_id, sum(wr_return_quantity) AS quantity
    FROM web_returns
      JOIN date_dim ON d_date_sk = wr_returned_date_sk
      JOIN item ON i_item_sk = wr_item_sk
    WHERE d_date IN (SELECT d_date FROM those_weeks)
    GROUP BY i_item_id),
  everywhere AS (
    SELECT to_stores.item_id, to_stores.quantity AS sr_item_qty, to_catalog.quantity AS cr_item_qty,
      to_web.quantity AS wr_item_qty, to_stores.quantity + to_catalog.quantity + to_web.quantity AS together
    FROM to_stores
      JOIN to_catalog ON to_catalog.item_id = to_stores.item_id
      JOIN to_web ON to_web.item_id = to_stores.item_id)
SELECT item_id, sr_item_qty, sr_item_qty / together / 3.0 * 100 AS sr_dev, cr_item_qty,
  cr_item_qty / together / 3.0 * 100 AS cr_dev, wr_item_qty, wr_item_qty / together / 3.0 * 100 AS wr_dev,
  together / 3.0 AS average
FROM everywhere
ORDER BY item_id, sr_item_qty, cr_item_qty, wr_item_qty
LIMIT 100
