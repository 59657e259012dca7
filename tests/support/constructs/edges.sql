SELECT t.a, x.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) x
SELECT t.a, x.n FROM t LEFT JOIN LATERAL (SELECT sum(b) AS n FROM u WHERE u.a = t.a) x ON x.n > 2
SELECT t.a, x.b FROM t LEFT JOIN LATERAL (SELECT b FROM u WHERE u.a <= t.a ORDER BY b DESC, e LIMIT 2) x ON true
SELECT t.a, z FROM t LEFT JOIN LATERAL explode(m) AS x(z) ON true
SELECT t.a, z FROM t LEFT JOIN LATERAL explode(m) AS x(z) ON z > 2
SELECT t.a, z FROM t LEFT JOIN LATERAL (SELECT t.b AS z WHERE t.b > 3) ON true
SELECT * FROM u, LATERAL (SELECT u.a + 1)
SELECT t.a, x.* FROM t, LATERAL (SELECT v.e FROM u RIGHT JOIN (SELECT * FROM u WHERE u.b = t.b) v ON u.a = v.b) x
SELECT u.a, x.*, y.* FROM u, LATERAL (SELECT max(b) AS m FROM t WHERE t.a = u.a) x, LATERAL (SELECT count(*) AS n FROM t WHERE t.b < x.m) y
SELECT a, stack(2, a, NULL, b, a) AS (x, y) FROM u
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND y.b NOT IN (SELECT b FROM t)
SELECT x.a, y.e FROM t x FULL JOIN u y ON x.a = y.a AND EXISTS (SELECT 1 FROM u z WHERE z.b = y.b)
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND (x.b > 2 OR EXISTS (SELECT 1 FROM u z WHERE z.b = y.b))
SELECT x.a FROM t x LEFT ANTI JOIN u y ON x.a = y.a AND x.b IN (SELECT b FROM u)
SELECT a, (a, b) NOT IN (SELECT u.a, b FROM u WHERE u.a < t.b) AS x FROM t
SELECT (SELECT max(b) FROM u WHERE u.a = t.a AND u.b > t.b) + a FROM t
SELECT * FROM (SELECT a, c, b FROM t) PIVOT (sum(b), count(*) FOR c IN ('1', '3'))
SELECT * FROM (SELECT a, c, d FROM t) PIVOT (max(c) AS m, count(*) AS n FOR d IN (0.5 AS half, 1.5))
SELECT * FROM (SELECT a, c, b, d FROM t) PIVOT (max(d) FOR (a, c) IN ((1, '1') AS x, (2, '3')))
SELECT * FROM u PIVOT (sum(b) FOR a IN (1, 2, NULL))
SELECT * FROM u UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((a, b) AS ab, (b, a) AS ba)) AS x
SELECT * FROM (SELECT a, d, b FROM t) UNPIVOT (v FOR n IN (a, d))
FROM u |> SET a = a + 1, b = a
FROM u |> SELECT DISTINCT a
FROM u |> AGGREGATE sum(b) GROUP BY 1, 3
FROM u |> ORDER BY b DESC, a |> DROP b |> LIMIT 2
FROM u |> ORDER BY a, b |> LIMIT 2 OFFSET 1
SELECT a FROM u UNION ALL SELECT b FROM t |> WHERE a > 3
SELECT t.a, x.n, (SELECT hex(bitmap_construct_agg(bitmap_bit_position(b))) FROM u WHERE u.a = t.a) AS y FROM t, LATERAL (SELECT approx_count_distinct(b) AS n FROM u WHERE u.a = t.a) x
