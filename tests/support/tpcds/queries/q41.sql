-- Products whose maker has any in certain colours, units and sizes of their category.
SELECT DISTINCT i_product_name
FROM item mine
WHERE 0 < (
    SELECT count(*)
    FROM item other
    WHERE other.i_manufact = mine.i_manufact
        AND (other.i_category = 'Electronics' AND other.i_color IN ('blanched', 'snow')
            AND other.i_size IN ('medium', 'petite') AND other.i_units IN ('Each', 'Ounce')
          OR other.i_category = 'Home' AND other.i_color IN ('khaki', 'slate')
            AND other.i_size IN ('extra large', 'large') AND other.i_units IN ('Oz', 'Pound'))
      OR other.i_manufact = mine.i_manufact
        AND (other.i_category = 'Music' AND other.i_color IN ('pale', 'slate')
            AND other.i_size IN ('medium', 'small') AND other.i_units IN ('Ounce', 'Oz')
          OR other.i_category = 'Women' AND other.i_color IN ('khaki', 'powder')
            AND other.i_size IN ('extra large', 'medium') AND other.i_units IN ('Ounce', 'Oz')
          OR other.i_category = 'Books' AND other.i_color IN ('blanched', 'slate')
            AND other.i_size IN ('N/A', 'medium') AND other.i_units IN ('Bunch', 'Ounce')))
  AND i_manufact_id BETWEEN 128 AND 728
ORDER BY i_product_name
LIMIT 100
