-- The winning bid of each auction; equal ones are told apart by the bidder.
SELECT id, itemName, description, initialBid, reserve, opened, expires, seller, category, bidder, price, bid_at
FROM (
  SELECT a.id, a.itemName, a.description, a.initialBid, a.reserve, a.dateTime AS opened, a.expires, a.seller,
    a.category, b.bidder, b.price, b.dateTime AS bid_at,
    row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime ASC, b.bidder) AS place
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires) ranked
WHERE place <= 1
