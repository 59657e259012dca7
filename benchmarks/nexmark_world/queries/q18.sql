-- The last bid of each person on each auction; equal times are told apart by the price.
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY bidder, auction ORDER BY dateTime DESC, price DESC, channel, url, extra) AS place
  FROM bid) ranked
WHERE place <= 1
