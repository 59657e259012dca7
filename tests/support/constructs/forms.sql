FROM u
FROM u SELECT a
FROM u SELECT a WHERE b > 2
TABLE u
(TABLE u)
TABLE u ORDER BY a, b LIMIT 2
TABLE u UNION ALL TABLE u
SELECT * FROM (TABLE u)
WITH x AS (TABLE u) TABLE x
VALUES (1, 2), (3, 4)
VALUES 1, 2
VALUES (1) UNION ALL VALUES (2)
SELECT * FROM VALUES 1, 2
SELECT * FROM (VALUES (1, 2))
SELECT * FROM u ORDER BY a, b LIMIT 1 + 1
SELECT * FROM u ORDER BY a, b LIMIT CAST('2' AS INT)
SELECT * FROM u ORDER BY a, b LIMIT 1 + 1 OFFSET 2 - 1
SELECT * FROM u ORDER BY a, b LIMIT -1 + 2
((SELECT a FROM u))
SELECT * FROM ((SELECT a FROM u))
SELECT * FROM ((SELECT a FROM u) UNION ALL (SELECT a FROM t))
SELECT * FROM (u)
SELECT * FROM ((u))
SELECT * FROM (u JOIN t ON u.a = t.a)
SELECT a, rank() OVER (ORDER BY sum(b)) FROM t GROUP BY a
SELECT a, p, grouping(a) + grouping(p) AS g, sum(b), rank() OVER (PARTITION BY grouping(a) + grouping(p) ORDER BY sum(b) DESC) AS r FROM t GROUP BY ROLLUP(a, p)
SELECT a FROM t INTERSECT SELECT a FROM u INTERSECT SELECT b FROM t
SELECT a, p, grouping(a) + grouping(p) AS g, sum(b) AS s, rank() OVER (PARTITION BY grouping(a) + grouping(p), CASE WHEN grouping(p) = 0 THEN a END ORDER BY sum(b) DESC) AS r FROM t GROUP BY ROLLUP(a, p)
SELECT * FROM (SELECT a FROM t) x WHERE EXISTS (SELECT * FROM u WHERE u.a = x.a) AND NOT EXISTS (SELECT * FROM u WHERE u.b = x.a) AND (EXISTS (SELECT * FROM u WHERE u.a > x.a) OR EXISTS (SELECT * FROM u WHERE u.b < x.a))
TABLE `u`
WITH q AS (SELECT a FROM u) TABLE q
(VALUES (1, 2))
SELECT * FROM (VALUES (1), (2)) AS v(x) WHERE x IN (VALUES 2, 3)
SELECT * FROM (TABLE u) AS x WHERE x.a = 2
SELECT k.order, `values` + 1 FROM k
SELECT a AS end, b AS interval FROM u ORDER BY end, interval LIMIT 2
SELECT date, timestamp, first, left, map FROM k
