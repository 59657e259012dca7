-- How many pairs of customer and item were sold only in stores, only by catalog, and in both.
WITH from_stores AS (
    SELECT DISTINCT ss_customer_sk AS buyer, ss_item_sk AS thing
    FROM store_sales
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211),
  from_catalog AS (
    SELECT DISTINCT cs_bill_customer_sk AS buyer, cs_item_sk AS thing
    FROM catalog_sales
      JOIN date_dim ON d_date_sk = cs_sold_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211),
  pairs AS (
    SELECT from_stores.buyer IS NOT NULL AS by_store, from_catalog.buyer IS NOT NULL AS by_catalog
    FROM from_stores
      FULL OUTER JOIN from_catalog ON from_catalog.thing = from_stores.thing
        AND from_catalog.buyer = from_stores.buyer)
SELECT sum(CASE WHEN by_store AND NOT by_catalog THEN 1 ELSE 0 END) AS store_only,
  sum(CASE WHEN by_catalog AND NOT by_store THEN 1 ELSE 0 END) AS catalog_only,
  sum(CASE WHEN by_store AND by_catalog THEN 1 ELSE 0 END) AS store_and_catalog
FROM pairs
LIMIT 100
