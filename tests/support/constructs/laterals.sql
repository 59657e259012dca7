SELECT t.a, x.n FROM t JOIN LATERAL (SELECT sum(b) AS n FROM u WHERE u.a = t.a) x
SELECT t.a, x.n FROM t JOIN LATERAL (SELECT sum(b) AS n FROM u WHERE u.a = t.a) x ON x.n > 2
SELECT t.a, x.n FROM t LEFT JOIN LATERAL (SELECT sum(b) AS n FROM u WHERE u.a = t.a) x ON true
SELECT t.a, x.b FROM t, LATERAL (SELECT b FROM u WHERE u.a = t.a ORDER BY b DESC LIMIT 1) x
SELECT t.a, x.* FROM t CROSS JOIN LATERAL (SELECT u.e, t.a + u.a AS z FROM u WHERE u.b < t.b) x
SELECT t.a, x.* FROM t, LATERAL (SELECT u.e, v.b FROM u JOIN u v ON u.a = v.b WHERE u.b = t.b) AS x(p, q)
SELECT * FROM u, LATERAL (SELECT u.a + 1 AS z), LATERAL (SELECT z * 2 AS w)
SELECT * FROM u, LATERAL (SELECT 1 AS one)
SELECT t.a, z FROM t, LATERAL (SELECT explode(t.m) AS z)
SELECT t.a, z FROM t, LATERAL explode(t.m) AS x(z)
SELECT t.a, z FROM t, LATERAL explode(m) AS x(z)
SELECT t.a, x.* FROM t, LATERAL explode_outer(m) x
SELECT t.a, x.* FROM t, LATERAL posexplode(m) x
SELECT t.a, x.* FROM t, LATERAL inline(array(s)) x
SELECT t.a, x.* FROM t, LATERAL stack(2, a, b) x
SELECT t.a, x.* FROM t, LATERAL stack(2, a, c, b) x
SELECT t.a, x.* FROM t, LATERAL range(3) x
SELECT * FROM explode(array(1, 2, 3))
SELECT * FROM explode(array(1, 2, 3)) AS x(y)
SELECT * FROM posexplode(array(1, 2, 3)) AS x(y, z)
SELECT * FROM explode(map(1, 'a'))
SELECT * FROM inline(array(struct(1, 'a'), struct(2, 'b')))
SELECT * FROM stack(2, 1, 2, 3)
SELECT * FROM range(5)
SELECT * FROM range(2, 5) AS r(x)
SELECT * FROM range(10, 0, -3)
SELECT id + 1 FROM range(0, 10, 4, 2) r
SELECT * FROM range(0, 1 + 2)
SELECT * FROM range('2')
SELECT r.id, u.e FROM u JOIN range(4) r ON r.id = u.a
SELECT stack(2, a, b) FROM t
SELECT a, x FROM t LATERAL VIEW OUTER stack(2, a, b, 3) q AS x, y
SELECT a, x FROM t LATERAL VIEW OUTER inline(array(s)) q AS x, y
SELECT a, x FROM t LATERAL VIEW explode(m) q AS x LATERAL VIEW explode(m) r AS y WHERE x < y
SELECT t.a, x.n FROM t, LATERAL (SELECT e, count(*) AS n FROM u WHERE u.a = t.a GROUP BY e HAVING count(*) > t.a - 3) x
SELECT t.a, x.* FROM t, LATERAL (SELECT DISTINCT u.a FROM u WHERE u.b <> t.b) x
SELECT t.a, x.* FROM t, LATERAL (SELECT a FROM u WHERE u.b = t.b UNION ALL SELECT b FROM u WHERE u.a = t.a) x
SELECT t.a, x.* FROM t, LATERAL (SELECT u.a, row_number() OVER (ORDER BY u.b, u.e) AS r FROM u WHERE u.b > t.b) x
SELECT t.a, x.* FROM t, LATERAL (SELECT v.e FROM u RIGHT JOIN u v ON u.a = v.b WHERE v.b = t.b) x
SELECT t.a, x.* FROM t, LATERAL (SELECT v.e FROM u FULL JOIN u v ON u.a = v.b WHERE v.b = t.b) x
SELECT t.a, x.* FROM t, LATERAL (SELECT v.e FROM (SELECT * FROM u WHERE u.b = t.b) v LEFT JOIN u w ON v.a = w.b) x
SELECT * FROM u, LATERAL (SELECT * FROM u v WHERE v.a = u.a)
SELECT * FROM LATERAL (SELECT 1 AS x)
SELECT * FROM LATERAL explode(array(1, 2))
SELECT a, x FROM t LATERAL VIEW explode(array(b, (SELECT max(b) FROM u))) q AS x
SELECT a, stack(1, a, b) FROM u
SELECT a, z FROM u LATERAL VIEW OUTER explode(array(a, b)) q AS z WHERE z IS NOT NULL
SELECT a, k, v FROM u LATERAL VIEW explode(map('x', a, 'y', b)) q AS k, v
SELECT a, p, k, v FROM u LATERAL VIEW posexplode(map('x', a, 'y', b)) q AS p, k, v
SELECT a, x, y FROM t LATERAL VIEW inline(array(s, s)) q AS x, y
SELECT a, z, w FROM t LATERAL VIEW explode(m) q AS z LATERAL VIEW OUTER explode(array(z, a)) r AS w
SELECT t.a, z FROM t LEFT JOIN LATERAL (SELECT explode(t.m) AS z) ON true
SELECT t.a, z FROM t LEFT JOIN LATERAL (SELECT t.b AS z WHERE t.b > 3)
SELECT t.a, z FROM t LEFT JOIN LATERAL (SELECT t.b AS z)
SELECT t.a, z FROM t LEFT JOIN LATERAL (SELECT t.b AS z) ON z > 3
SELECT t.a, z FROM t LEFT JOIN LATERAL (SELECT t.b AS z LIMIT 0) ON true
SELECT t.a, z FROM t LEFT JOIN LATERAL (SELECT 1 AS z FROM u WHERE u.a = t.a)
SELECT t.a, z FROM t LEFT JOIN LATERAL (SELECT count(*) AS z FROM u WHERE u.a = t.a)
SELECT t.a, z FROM t LEFT JOIN LATERAL (SELECT count(*) AS z FROM u WHERE u.a = t.a) ON z > 0
SELECT t.a, z FROM t LEFT JOIN LATERAL explode(m) x(z) ON t.a > 1
SELECT t.a, z FROM t LEFT JOIN LATERAL explode_outer(m) x(z) ON z > 1
SELECT t.a, z FROM t JOIN LATERAL explode(m) x(z) ON z > t.b
SELECT * FROM u, LATERAL (SELECT u.a)
SELECT * FROM u, LATERAL (SELECT a)
SELECT * FROM u AS w, LATERAL (SELECT w.a, a + t.b FROM t WHERE t.a = w.b)
SELECT * FROM (SELECT a AS k FROM u), LATERAL (SELECT k + 1)
SELECT * FROM t, LATERAL (SELECT s.x, t.s.y)
SELECT * FROM t, LATERAL (SELECT CAST(a AS STRING))
SELECT * FROM u, LATERAL (SELECT DISTINCT t.a, u.b FROM t WHERE t.b > u.b)
SELECT * FROM u, LATERAL (SELECT t.a FROM t WHERE t.b > u.b EXCEPT SELECT t.a FROM t WHERE t.a = u.a) x
SELECT * FROM u, LATERAL (SELECT t.a, sum(t.b) OVER (PARTITION BY t.a) AS s FROM t WHERE t.b > u.b) x
SELECT u.a, x.* FROM u, LATERAL (SELECT t.b FROM t WHERE t.a = u.a ORDER BY t.b LIMIT 1 OFFSET 1) x
SELECT u.a, x.* FROM u, LATERAL (SELECT * FROM (SELECT t.b, t.c FROM t WHERE t.a = u.a ORDER BY t.b DESC, t.c LIMIT 2) ORDER BY b LIMIT 1) x
SELECT u.a, x.* FROM u, LATERAL (WITH q AS (SELECT b FROM t WHERE t.a = u.a) SELECT max(b) AS m FROM q) x
SELECT u.a, x.n FROM u, LATERAL (SELECT count(*) AS n FROM t WHERE EXISTS (SELECT 1 FROM u v WHERE v.a = t.a) AND t.b > u.b) x
SELECT u.a, x.n FROM u JOIN t ON u.a = t.a JOIN LATERAL (SELECT count(*) AS n FROM u v WHERE v.b > t.b OR v.a = u.a) x ON n > 1
SELECT u.a, x.n FROM u, LATERAL (SELECT a AS n FROM t WHERE t.b IN (u.a, u.b)) x WHERE n > 1
SELECT u.a, (SELECT max(z) FROM t, LATERAL (SELECT t.b + 1 AS z) WHERE t.a = u.a) AS m FROM u
SELECT u.a FROM u WHERE EXISTS (SELECT 1 FROM t, LATERAL explode(t.m) x(z) WHERE z = u.b)
SELECT u.a FROM u WHERE u.b IN (SELECT z FROM t, LATERAL explode(t.m) x(z))
SELECT (SELECT max(z) FROM explode(t.m) AS x(z)) FROM t
SELECT t.a, (SELECT sum(z) FROM LATERAL explode(t.m) AS x(z)) AS s FROM t
SELECT id, e FROM range(3) LEFT JOIN u ON id = a
SELECT * FROM RANGE(2) JOIN LATERAL (SELECT id * 2 AS d)
SELECT * FROM (SELECT a AS k FROM u) JOIN LATERAL (SELECT k + 1, k) ON true
