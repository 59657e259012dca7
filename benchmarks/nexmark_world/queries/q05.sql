-- The auctions with the most bids in each window of 10 seconds that starts every 2 seconds.
-- Flink writes HOP(...) as a table function; here it is Spark's window().
WITH counted AS (
  SELECT auction, count(*) AS num, w.start AS starttime, w.end AS endtime
  FROM (SELECT auction, window(dateTime, '10 seconds', '2 seconds') AS w FROM bid) hops
  GROUP BY auction, w)
SELECT one.auction, one.num
FROM counted one
  JOIN (SELECT max(num) AS maxn, starttime, endtime FROM counted GROUP BY starttime, endtime) most
    ON one.starttime = most.starttime AND one.endtime = most.endtime AND one.num >= most.maxn
