-- People who opened an auction within the 10 seconds in which they came.
SELECT p.id, p.name, p.starttime
FROM (
    SELECT id, name, w.start AS starttime, w.end AS endtime
    FROM (SELECT id, name, window(dateTime, '10 seconds') AS w FROM person) came
    GROUP BY id, name, w) p
  JOIN (
    SELECT seller, w.start AS starttime, w.end AS endtime
    FROM (SELECT seller, window(dateTime, '10 seconds') AS w FROM auction) opened
    GROUP BY seller, w) a
    ON p.id = a.seller AND p.starttime = a.starttime AND p.endtime = a.endtime
