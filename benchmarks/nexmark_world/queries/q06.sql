-- The average of the last ten closing prices of each seller.
-- Flink's form keeps the winning bid by ROW_NUMBER; ties at one time are broken by the auction, so that frames are determined.
SELECT seller, auction,
  avg(price) OVER (PARTITION BY seller ORDER BY dateTime, auction ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT a.id AS auction, a.seller, b.price, b.dateTime,
    row_number() OVER (PARTITION BY a.id, a.seller ORDER BY b.price DESC, b.dateTime, b.bidder) AS place
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.dateTime BETWEEN a.dateTime AND a.expires) won
WHERE place = 1
