-- List prices within six brackets of quantities: the average, how many, and how many different ones.
SELECT *
FROM (
    SELECT avg(ss_list_price) AS b1_lp, count(ss_list_price) AS b1_cnt,
      count(DISTINCT ss_list_price) AS b1_cntd
    FROM store_sales
    WHERE (ss_wholesale_cost BETWEEN 57 AND 77 OR ss_coupon_amt BETWEEN 459 AND 1459
        OR ss_list_price BETWEEN 8 AND 18)
      AND ss_quantity BETWEEN 0 AND 15) up_to_15
  CROSS JOIN (
    SELECT avg(ss_list_price) AS b2_lp, count(ss_list_price) AS b2_cnt,
      count(DISTINCT ss_list_price) AS b2_cntd
    FROM store_sales
    WHERE (ss_wholesale_cost BETWEEN 31 AND 51 OR ss_coupon_amt BETWEEN 123 AND 1123
        OR ss_list_price BETWEEN 50 AND 60)
      AND ss_quantity BETWEEN 16 AND 30) up_to_30
  CROSS JOIN (
    SELECT avg(ss_list_price) AS b3_lp, count(ss_list_price) AS b3_cnt,
      count(DISTINCT ss_list_price) AS b3_cntd
    FROM store_sales
    WHERE (ss_wholesale_cost BETWEEN 9 AND 29 OR ss_coupon_amt BETWEEN 251 AND 1251
        OR ss_list_price BETWEEN 42 AND 52)
      AND ss_quantity BETWEEN 31 AND 45) up_to_45
  CROSS JOIN (
    SELECT avg(ss_list_price) AS b4_lp, count(ss_list_price) AS b4_cnt,
      count(DISTINCT ss_list_price) AS b4_cntd
    FROM store_sales
    WHERE (ss_wholesale_cost BETWEEN 30 AND 50 OR ss_coupon_amt BETWEEN 606 AND 1606
        OR ss_list_price BETWEEN 35 AND 45)
      AND ss_quantity BETWEEN 46 AND 60) up_to_60
  CROSS JOIN (
    SELECT avg(ss_list_price) AS b5_lp, count(ss_list_price) AS b5_cnt,
      count(DISTINCT ss_list_price) AS b5_cntd
    FROM store_sales
    WHERE (ss_wholesale_cost BETWEEN 20 AND 40 OR ss_coupon_amt BETWEEN 10 AND 1010
        OR ss_list_price BETWEEN 12 AND 22)
      AND ss_quantity BETWEEN 61 AND 80) up_to_80
  CROSS JOIN (
    SELECT avg(ss_list_price) AS b6_lp, count(ss_list_price) AS b6_cnt,
      count(DISTINCT ss_list_price) AS b6_cntd
    FROM store_sales
    WHERE (ss_wholesale_cost BETWEEN 15 AND 35 OR ss_coupon_amt BETWEEN 36 AND 1036
        OR ss_list_price BETWEEN 15 AND 25)
      AND ss_quantity BETWEEN 81 AND 100) up_to_100
LIMIT 100
