-- The ten highest bids of each auction; equal ones are told apart by all of their columns.
SELECT *
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY auction ORDER BY price DESC, dateTime, bidder, channel, url, extra) AS rank_number
  FROM bid) ranked
WHERE rank_number <= 10
