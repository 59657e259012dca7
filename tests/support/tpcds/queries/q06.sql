-- States where at least three sales of a month were of things priced over 1.2 times their category's average.
SELECT ca_state AS state, count(*) AS cnt
FROM store_sales
  JOIN item dear ON dear.i_item_sk = ss_item_sk
  JOIN date_dim ON d_date_sk = ss_sold_date_sk
  JOIN customer ON c_customer_sk = ss_customer_sk
  JOIN customer_address ON ca_address_sk = c_current_addr_sk
WHERE dear.i_current_price > 1.2 * (
    SELECT avg(same.i_current_price) FROM item same WHERE same.i_category = dear.i_category)
  AND d_month_seq = (SELECT DISTINCT d_month_seq FROM date_dim WHERE d_moy = 2 AND d_year = 2000)
GROUP BY ca_state
HAVING count(*) > 2
ORDER BY cnt, ca_state
LIMIT 100
