-- What part of the book sales of one month and time zone was made under promotions by mail or television.
WITH book_sales AS (
  SELECT ss_ext_sales_price AS price, ss_promo_sk AS promo_sk
  FROM store_sales
    JOIN item ON i_item_sk = ss_item_sk
    JOIN customer ON c_customer_sk = ss_customer_sk
    JOIN customer_address ON ca_address_sk = c_current_addr_sk
    JOIN date_dim ON d_date_sk = ss_sold_date_sk
    JOIN store ON s_store_sk = ss_store_sk
  WHERE i_category = 'Books' AND d_year = 2000 AND d_moy = 2 AND s_gmt_offset = -5 AND ca_gmt_offset = -5)
SELECT promotions, total,
  CAST(promotions AS DECIMAL(15, 4)) / CAST(nullif(total, 0) AS DECIMAL(15, 4)) * 100 AS percentage
FROM (
    SELECT sum(price) AS promotions
    FROM book_sales
      JOIN promotion ON p_promo_sk = promo_sk
    WHERE 'Y' IN (p_channel_tv, p_channel_email, p_channel_dmail)) promoted
  CROSS JOIN (SELECT sum(price) AS total FROM book_sales) everything
ORDER BY promotions, total
LIMIT 100
