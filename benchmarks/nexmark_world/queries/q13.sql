-- Bids with what a side input says; Flink's lookup join is a join with a table.
SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
FROM bid b JOIN side_input s ON mod(b.auction, 10000) = s.key
