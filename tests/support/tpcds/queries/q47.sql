-- Months in which a store sold a brand far from its average month, with the months next to them.
WITH months AS (
    SELECT i_category, i_brand, s_store_name, s_company_name, d_year, d_moy, sum(ss_sales_price) AS sold,
      avg(sum(ss_sales_price)) OVER (
        PARTITION BY s_company_name, s_store_name, i_category, i_brand, d_year) AS usual,
      rank() OVER (
        PARTITION BY s_company_name, s_store_name, i_category, i_brand ORDER BY d_year, d_moy) AS place
    FROM store_sales
      JOIN store ON s_store_sk = ss_store_sk
      JOIN item ON i_item_sk = ss_item_sk
      JOIN date_dim ON d_date_sk = ss_sold_date_sk
    WHERE d_year = 1999 AND d_moy = 12 OR d_year = 2000 OR d_year = 2001 AND d_moy = 1
    GROUP BY s_company_name, s_store_name, i_category, i_brand, d_year, d_moy),
  with_neighbours AS (
    SELECT this.i_category, this.i_brand, this.s_store_name, this.s_company_name, this.d_year, this.d_moy,
      this.usual AS avg_monthly_sales, this.sold AS sum_sales, earlier.sold AS psum, later.sold AS nsum
    FROM months this
      JOIN months earlier ON earlier.place = this.place - 1 AND earlier.s_company_name = this.s_company_name
        AND earlier.s_store_name = this.s_store_name AND earlier.i_category = this.i_category
        AND earlier.i_brand = this.i_brand
      JOIN months later ON later.place = this.place + 1 AND later.s_company_name = this.s_company_name
        AND later.s_store_name = this.s_store_name AND later.i_category = this.i_category
        AND later.i_brand = this.i_brand)
SELECT *
FROM with_neighbours
WHERE CASE WHEN avg_monthly_sales > 0 THEN abs(sum_sales - avg_monthly_sales) / avg_monthly_sales END > 0.1
  AND avg_monthly_sales > 0 AND d_year = 2000
ORDER BY sum_sales - avg_monthly_sales, i_category, i_brand, s_store_name, s_company_name, d_year, d_moy,
  psum, nsum
LIMIT 100
