-- Bids with their auctions, of one category.
SELECT auction, bidder, price, channel, url, b.dateTime, b.extra, itemName, description, initialBid, reserve,
  a.dateTime AS opened, expires, seller, category, a.extra AS auction_extra
FROM bid AS b INNER JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10
