-- Profit of stores near to where many preferred customers live.
SELECT s_store_name, sum(ss_net_profit)
FROM store_sales, date_dim, store, (
    SELECT place
    FROM (
      SELECT substring(ca_zip, 1, 5) AS place
      FROM customer_address
      WHERE substring(ca_zip, 1, 5) IN ('24128', '76232', '65084', '87816', '83926', '77556', '20548', '26231')
      INTERSECT
      SELECT place
      FROM (
        SELECT substring(ca_zip, 1, 5) AS place, count(*) AS people
        FROM customer_address JOIN customer ON ca_address_sk = c_current_addr_sk
        WHERE c_preferred_cust_flag = 'Y'
        GROUP BY ca_zip
        HAVING count(*) > 2) preferred) shared) near
WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d_date_sk AND d_qoy = 1 AND d_year = 2000
  AND substring(s_zip, 1, 2) = substring(near.place, 1, 2)
GROUP BY s_store_name
ORDER BY s_store_name
LIMIT 100
