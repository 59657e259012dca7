-- Bids with the columns that files are partitioned by; Flink writes them to a filesystem.
SELECT auction, bidder, price, dateTime, extra, date_format(dateTime, 'yyyy-MM-dd') AS dt,
  date_format(dateTime, 'HH:mm') AS hm
FROM bid
