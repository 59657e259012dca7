-- Items brought back to a store by people who have since married or parted, in one year beside the next.
WITH sold_well AS (
    SELECT cs_item_sk AS thing
    FROM catalog_sales
      JOIN catalog_returns ON cr_order_number = cs_order_number AND cr_item_sk = cs_item_sk
    GROUP BY cs_item_sk
    HAVING sum(cs_ext_list_price) > 2 * sum(cr_refunded_cash + cr_reversed_charge + cr_store_credit)),
  yearly AS (
    SELECT i_item_sk AS item_sk, i_product_name AS product_name, s_store_name AS store_name,
      s_zip AS store_zip,
      sent_to.ca_street_number AS b_street_number, sent_to.ca_street_name AS b_street_name,
      sent_to.ca_city AS b_city, sent_to.ca_zip AS b_zip, lives_at.ca_street_number AS c_street_number,
      lives_at.ca_street_name AS c_street_name, lives_at.ca_city AS c_city, lives_at.ca_zip AS c_zip,
      sold.d_year AS in_year, first_sold.d_year AS first_year, first_sent.d_year AS first_sent_year,
      count(*) AS times, sum(ss_wholesale_cost) AS cost, sum(ss_list_price) AS list_price,
      sum(ss_coupon_amt) AS coupons
    FROM store_sales
      JOIN store_returns ON sr_ticket_number = ss_ticket_number AND sr_item_sk = ss_item_sk
      JOIN sold_well ON thing = ss_item_sk
      JOIN item ON i_item_sk = ss_item_sk
      JOIN store ON s_store_sk = ss_store_sk
      JOIN promotion ON p_promo_sk = ss_promo_sk
      JOIN date_dim sold ON sold.d_date_sk = ss_sold_date_sk
      JOIN customer_address sent_to ON sent_to.ca_address_sk = ss_addr_sk
      JOIN customer_demographics person_then ON person_then.cd_demo_sk = ss_cdemo_sk
      JOIN household_demographics home_then ON home_then.hd_demo_sk = ss_hdemo_sk
      JOIN income_band income_then ON income_then.ib_income_band_sk = home_then.hd_income_band_sk
      JOIN customer ON c_customer_sk = ss_customer_sk
      JOIN date_dim first_sold ON first_sold.d_date_sk = c_first_sales_date_sk
      JOIN date_dim first_sent ON first_sent.d_date_sk = c_first_shipto_date_sk
      JOIN customer_address lives_at ON lives_at.ca_address_sk = c_current_addr_sk
      JOIN customer_demographics person_now ON person_now.cd_demo_sk = c_current_cdemo_sk
      JOIN household_demographics home_now ON home_now.hd_demo_sk = c_current_hdemo_sk
      JOIN income_band income_now ON income_now.ib_income_band_sk = home_now.hd_income_band_sk
    WHERE person_now.cd_marital_status <> person_then.cd_marital_status
      AND i_current_price BETWEEN 2 AND 96 AND i_current_price BETWEEN 1 AND 81
      AND i_color IN ('blanched', 'chiffon', 'khaki', 'pale', 'powder', 'slate')
    GROUP BY i_item_sk, i_product_name, s_store_name, s_zip, sent_to.ca_street_number, sent_to.ca_street_name,
      sent_to.ca_city, sent_to.ca_zip, lives_at.ca_street_number, lives_at.ca_street_name, lives_at.ca_city,
      lives_at.ca_zip, sold.d_year, first_sold.d_year, first_sent.d_year)
SELECT earlier.product_name, earlier.store_name, earlier.store_zip, earlier.b_street_number,
  earlier.b_street_name, earlier.b_city, earlier.b_zip, earlier.c_street_number, earlier.c_street_name,
  earlier.c_city, earlier.c_zip, earlier.in_year AS syear, earlier.times AS cnt, earlier.cost AS s11,
  earlier.list_price AS s21, earlier.coupons AS s31, later.cost AS s12, later.list_price AS s22,
  later.coupons AS s32, later.in_year AS syear, later.times AS cnt
FROM yearly earlier
  JOIN yearly later ON later.store_zip = earlier.store_zip AND later.store_name = earlier.store_name
    AND later.item_sk = earlier.item_sk
WHERE earlier.in_year = 2000 AND later.in_year = 2001 AND later.times <= earlier.times
ORDER BY earlier.product_name, earlier.store_name, later.times, earlier.cost, later.cost
