-- How many bids a person makes in each 10 seconds.
-- Flink's windows are of processing time, which tables do not have: here they are of the bids' own time.
SELECT bidder, count(*) AS bid_count, window.start AS starttime, window.end AS endtime
FROM bid
GROUP BY bidder, window(dateTime, '10 seconds')
