-- The highest bids of each window of 10 seconds.
SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM bid b
  JOIN (
    SELECT max(price) AS maxprice, w.end AS closed
    FROM (SELECT price, window(dateTime, '10 seconds') AS w FROM bid) tumbled
    GROUP BY w) top
    ON b.price = top.maxprice
WHERE b.dateTime BETWEEN top.closed - INTERVAL '10' SECOND AND top.closed
