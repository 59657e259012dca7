-- The average of what auctions of a category closed at.
SELECT category, avg(final)
FROM (
  SELECT max(b.price) AS final, a.category
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.dateTime BETWEEN a.dateTime AND a.expires
  GROUP BY a.id, a.category) closed
GROUP BY category
