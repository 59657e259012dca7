-- What customers of stores paid for what they kept of the things they brought back for one reason.
WITH kept AS (
  SELECT ss_customer_sk,
    CASE WHEN sr_return_quantity IS NULL THEN ss_quantity * ss_sales_price
      ELSE (ss_quantity - sr_return_quantity) * ss_sales_price END AS paid
  FROM store_sales
    LEFT OUTER JOIN store_returns ON sr_ticket_number = ss_ticket_number AND sr_item_sk = ss_item_sk
    JOIN reason ON r_reason_sk = sr_reason_sk
  WHERE r_reason_desc = 'reason 28')
SELECT ss_customer_sk, sum(paid) AS sumsales
FROM kept
GROUP BY ss_customer_sk
ORDER BY sumsales, ss_customer_sk
LIMIT 100
