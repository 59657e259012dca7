-- Products whose maker has others in certain colours, units and sizes.
SELECT DISTINCT i_product_name
FROM item i1
WHERE i_manufact_id BETWEEN 128 AND 128 + 600
  AND (SELECT count(*) AS item_cnt
    FROM item
    WHERE (i_manufact = i1.i_manufact
        AND ((i_category = 'Women' AND (i_color = 'powder' OR i_color = 'khaki')
            AND (i_units = 'Ounce' OR i_units = 'Oz') AND (i_size = 'medium' OR i_size = 'extra large'))
          OR (i_category = 'Books' AND (i_color = 'slate' OR i_color = 'blanched')
            AND (i_units = 'Bunch' OR i_units = 'Ounce') AND (i_size = 'N/A' OR i_size = 'medium'))
          OR (i_category = 'Music' AND (i_color = 'slate' OR i_color = 'pale')
            AND (i_units = 'Ounce' OR i_units = 'Oz') AND (i_size = 'medium' OR i_size = 'small'))))
      OR (i_manufact = i1.i_manufact
        AND ((i_category = 'Home' AND (i_color = 'slate' OR i_color = 'khaki')
            AND (i_units = 'Pound' OR i_units = 'Oz') AND (i_size = 'extra large' OR i_size = 'large'))
          OR (i_category = 'Electronics' AND (i_color = 'snow' OR i_color = 'blanched')
            AND (i_units = 'Each' OR i_units = 'Ounce') AND (i_size = 'medium' OR i_size = 'petite'))))) > 0
ORDER BY i_product_name
LIMIT 100
