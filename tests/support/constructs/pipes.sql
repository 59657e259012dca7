FROM u |> WHERE a > 1
FROM u |> WHERE a > 1 |> SELECT a, e
FROM u |> SELECT a, b + 1 AS c |> WHERE c > 3
FROM u |> EXTEND a + b AS c
FROM u |> EXTEND a + b
FROM u |> DROP a
FROM u |> DROP a, b
FROM u |> AS x |> WHERE x.a = 2
FROM u |> AGGREGATE count(*)
FROM u |> AGGREGATE count(*) AS n, sum(b) GROUP BY a
FROM u |> AGGREGATE sum(b) AS s GROUP BY a % 2 AS k
FROM u |> AGGREGATE sum(b) AS s GROUP BY a % 2
FROM u |> AGGREGATE GROUP BY a
FROM u |> AGGREGATE sum(b) GROUP BY 1
FROM u |> JOIN t ON u.a = t.a |> SELECT u.e, t.c
FROM u |> LEFT JOIN t USING (a) |> SELECT a, e, c
FROM u |> JOIN LATERAL (SELECT max(b) AS m FROM t WHERE t.a = u.a)
FROM u |> ORDER BY a, b |> LIMIT 2
FROM u |> LIMIT 100 |> WHERE a = 2
FROM u |> ORDER BY b |> SELECT e |> LIMIT 2
FROM u |> SELECT a |> UNION ALL (SELECT b FROM t) |> WHERE a > 3
FROM u |> SELECT a |> UNION ALL SELECT b FROM t
FROM u |> SELECT a |> EXCEPT (SELECT b FROM t)
FROM u |> SELECT a |> INTERSECT ALL (SELECT b FROM t)
FROM u |> PIVOT (sum(b) FOR a IN (1, 2))
FROM u |> UNPIVOT (v FOR n IN (a, b))
SELECT a FROM u |> WHERE a > 1
SELECT a, sum(b) AS s FROM u GROUP BY a |> WHERE s > 2
VALUES (1, 'a'), (2, 'b') |> WHERE col1 > 1
TABLE u |> WHERE a = 2
(FROM u |> WHERE a = 2)
SELECT * FROM (FROM u |> WHERE a = 2)
WITH x AS (FROM u |> SELECT a) SELECT * FROM x
FROM u |> SELECT a AS b, a + 1 AS c, c + 1 AS d
FROM u |> EXTEND row_number() OVER (ORDER BY b, a, e) AS r |> WHERE r < 3
FROM u |> WHERE EXISTS (SELECT 1 FROM t WHERE t.a = u.a)
FROM u |> AGGREGATE sum(b) AS s GROUP BY a |> JOIN u v USING (a) |> SELECT a, s, e
FROM u |> AS x |> JOIN u AS y ON x.a = y.b |> SELECT x.e, y.e AS f
FROM u |> SELECT u.a
FROM u |> SELECT u.a |> WHERE u.a > 1
FROM u |> EXTEND u.a AS z |> WHERE u.a > 1
FROM u |> AGGREGATE max(a) + min(b) AS x |> EXTEND x + 1 AS y |> SET x = y |> DROP y
FROM u |> WHERE a > 1 ORDER BY a LIMIT 2
FROM u |> ORDER BY a, b |> LIMIT 3 |> OFFSET 1
FROM u |> ORDER BY a, b |> OFFSET 1 |> LIMIT 2
FROM u |> ORDER BY a, b |> EXTEND a + 1 AS z |> LIMIT 2 |> SELECT z, e
FROM u |> ORDER BY b DESC, a |> SET b = 0 |> LIMIT 2
FROM u |> ORDER BY 2 DESC, 1 |> LIMIT 2
FROM u |> ORDER BY ALL |> LIMIT 2
FROM u |> SELECT *, a + 1 AS z |> DROP a
FROM u |> SELECT u.*, b AS c |> WHERE u.b = c
FROM u |> SET A = 1
FROM u |> SET a = 1, a = 2
FROM u |> SET a = sum(b) OVER (PARTITION BY e)
FROM u |> EXTEND a AS a2, a2 + 1 AS a3
FROM u |> EXTEND explode(array(a, b)) AS z
FROM u |> EXTEND (SELECT max(b) FROM t) AS m
FROM u |> EXTEND (SELECT max(t.b) FROM t WHERE t.a = u.a) AS m
FROM u |> EXTEND 1
FROM u |> AGGREGATE sum(b) + 1 AS s, max(e) GROUP BY a, a % 2
FROM u |> AGGREGATE sum(b) AS s GROUP BY a AS k |> WHERE k > 1
FROM u |> AGGREGATE sum(b) AS s GROUP BY a |> WHERE u.a > 1
FROM u |> AGGREGATE count(*) AS n, count(DISTINCT a) AS d
FROM u |> AGGREGATE count(*) FILTER (WHERE a > 1) AS n GROUP BY b > 3
FROM u |> AGGREGATE sum(b) AS s GROUP BY a |> AGGREGATE max(s) AS m
FROM u |> AGGREGATE sum(b) AS s GROUP BY a |> ORDER BY s DESC |> LIMIT 1
FROM u |> SELECT sum(b) OVER ()
FROM u |> SELECT a |> AS x |> SELECT x.a
FROM u |> AS x |> SELECT *
FROM u x |> JOIN u y ON x.a = y.b |> AGGREGATE count(*) AS n GROUP BY x.a, y.e
FROM u |> JOIN u USING (a)
FROM u x |> LEFT JOIN t y USING (a) |> WHERE y.c IS NULL |> SELECT a, e
FROM u |> LEFT SEMI JOIN t ON u.a = t.a |> SELECT e
FROM u |> CROSS JOIN (SELECT max(b) AS m FROM t) |> WHERE b = m
FROM u |> NATURAL JOIN u
FROM u, t |> WHERE u.a = t.a |> SELECT u.a, t.c
FROM u JOIN t ON u.a = t.a |> SELECT u.a, t.c
FROM u |> UNION ALL FROM u
FROM u |> UNION (SELECT * FROM u)
FROM u |> EXCEPT ALL TABLE u
FROM u |> SELECT a, b |> UNION ALL VALUES (1, 2)
FROM u |> SELECT a |> UNION ALL (SELECT b FROM t) |> UNION (SELECT a FROM t) |> ORDER BY a |> LIMIT 4
FROM u |> SELECT a |> INTERSECT SELECT b FROM t |> WHERE a = 2
FROM u |> PIVOT (sum(b) AS s, max(b) AS m FOR a IN (1, 2)) |> WHERE e > 'p'
FROM u |> UNPIVOT (v FOR n IN (a, b)) |> AGGREGATE sum(v) AS s GROUP BY n
FROM u |> SELECT ALL a
FROM u |> SELECT sum(b) OVER w WINDOW w AS (PARTITION BY a)
SELECT (FROM u |> AGGREGATE max(a)) AS m
SELECT a FROM t WHERE a IN (FROM u |> SELECT a)
SELECT a FROM t WHERE EXISTS (FROM u |> WHERE u.a = t.a)
SELECT x.a FROM (FROM u |> WHERE a > 1) x
SELECT x.a FROM (SELECT * FROM u |> WHERE a > 1) AS x JOIN t USING (a)
SELECT x.m FROM t, LATERAL (FROM u |> WHERE u.a = t.a |> AGGREGATE max(b) AS m) x
WITH q AS (FROM u |> AGGREGATE sum(b) AS s GROUP BY a) FROM q |> WHERE s > 1
WITH q AS (SELECT 1 AS a) SELECT * FROM q |> EXTEND 2 AS b
(SELECT a FROM u ORDER BY a LIMIT 2) |> EXTEND a + 1 AS z
TABLE u |> SELECT a
VALUES (1), (2) |> EXTEND col1 + 1 AS z
SELECT 1 AS x |> EXTEND x + 1 AS y
FROM VALUES (1, 'a'), (2, 'b') AS v(k, s) |> WHERE v.k > 1
FROM range(3) |> EXTEND id * 2 AS d
FROM t LATERAL VIEW explode(m) q AS z |> SELECT a, z
FROM t |> JOIN LATERAL explode(m) AS q(z) |> SELECT a, z
FROM t |> SELECT s.x, s |> WHERE x = 1
FROM k |> SELECT `order`, `values`, all |> WHERE all > 1
