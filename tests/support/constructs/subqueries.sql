SELECT x.a, y.e FROM t x JOIN u y ON x.a = y.a AND x.b IN (SELECT b FROM u)
SELECT x.a, y.e FROM t x JOIN u y ON x.a = y.a AND x.b NOT IN (SELECT b FROM u WHERE b IS NOT NULL)
SELECT x.a, y.e FROM t x JOIN u y ON x.a = y.a AND EXISTS (SELECT 1 FROM u z WHERE z.b = x.b)
SELECT x.a, y.e FROM t x JOIN u y ON x.a = y.a AND EXISTS (SELECT 1 FROM u z WHERE z.b = y.b)
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND x.b IN (SELECT b FROM u)
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND y.b IN (SELECT b FROM t)
SELECT x.a, y.e FROM t x RIGHT JOIN u y ON x.a = y.a AND y.b IN (SELECT b FROM t)
SELECT x.a, y.e FROM t x RIGHT JOIN u y ON x.a = y.a AND x.b IN (SELECT b FROM u)
SELECT x.a, y.e FROM t x FULL JOIN u y ON x.a = y.a AND x.b IN (SELECT b FROM u)
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND EXISTS (SELECT 1 FROM u z WHERE z.b = y.b)
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND NOT EXISTS (SELECT 1 FROM u z WHERE z.b = x.b)
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND x.b > (SELECT min(b) FROM u)
SELECT x.a FROM t x LEFT SEMI JOIN u y ON x.a = y.a AND x.b IN (SELECT b FROM u)
SELECT x.a FROM t x LEFT ANTI JOIN u y ON x.a = y.a AND y.b IN (SELECT b FROM t)
SELECT x.a FROM t x LEFT SEMI JOIN u y ON x.a = y.a AND EXISTS (SELECT 1 FROM u z WHERE z.b > y.b)
SELECT x.a, y.e FROM t x JOIN u y ON x.a = (SELECT max(a) FROM u)
SELECT a, count(*) FROM t GROUP BY a HAVING a IN (SELECT a FROM u)
SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > (SELECT min(b) FROM u) - 2
SELECT a, count(*) FROM t GROUP BY a HAVING EXISTS (SELECT 1 FROM u WHERE u.a = t.a)
SELECT a, max(b) AS m FROM t GROUP BY a HAVING max(b) IN (SELECT b FROM u)
SELECT a, max(b) AS m FROM t GROUP BY a HAVING max(b) NOT IN (SELECT b FROM u WHERE b > 3)
SELECT a, max(b) AS m FROM t GROUP BY a HAVING max(b) = (SELECT max(b) FROM u WHERE u.a = t.a)
SELECT sum((SELECT max(b) FROM u WHERE u.a = t.a)) FROM t
SELECT sum(CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.a = t.a) THEN 1 ELSE 0 END) FROM t
SELECT a, sum(CASE WHEN b IN (SELECT b FROM u) THEN 1 ELSE 0 END) AS n FROM t GROUP BY a
SELECT (SELECT max(b) FROM u WHERE u.a = t.a) AS m, count(*) FROM t GROUP BY (SELECT max(b) FROM u WHERE u.a = t.a)
SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) AS m, count(*) FROM t GROUP BY 1, 2
SELECT a, b, row_number() OVER (PARTITION BY (SELECT max(b) FROM u WHERE u.a = t.a) ORDER BY b, c, d) AS r FROM t
SELECT a, b, row_number() OVER (ORDER BY (SELECT max(b) FROM u WHERE u.a = t.a), b, c, d) AS r FROM t
SELECT count(*) FILTER (WHERE a IN (SELECT a FROM u)) FROM t
SELECT a FROM t WHERE (a, b) IN (SELECT a, b FROM u)
SELECT a FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u WHERE a IS NOT NULL)
SELECT a, (a, b) IN (SELECT a, b FROM u) AS x FROM t
SELECT a, (a, b) NOT IN (SELECT a, b FROM u) AS x FROM t
SELECT a FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u) OR a = 5
SELECT a, b NOT IN (SELECT b FROM u) AS x FROM t
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.b IN (SELECT b FROM u v WHERE v.a = u.a))
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a) OR EXISTS (SELECT 1 FROM u WHERE u.b = t.b)
SELECT a FROM t WHERE a > (SELECT avg(b) FROM u WHERE u.a = t.a) AND b < (SELECT max(b) FROM u)
SELECT a FROM t WHERE a = (SELECT u.a FROM u WHERE u.b = t.b LIMIT 1)
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.b = t.b ORDER BY u.a LIMIT 1)
SELECT a FROM t WHERE b = (SELECT max(u.b) FROM u WHERE u.a = t.a AND u.b < t.b)
SELECT a, (SELECT sum(b) FROM u WHERE u.a = t.a GROUP BY u.a) AS x FROM t
SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a HAVING count(*) > 1) AS x FROM t
SELECT (SELECT max(b) FROM u)
SELECT (SELECT max(b) FROM u), EXISTS (SELECT 1 FROM u), a IN (SELECT a FROM u) FROM t
SELECT (SELECT 1), (SELECT a FROM u LIMIT 0) + 1, -(SELECT 1)
SELECT (SELECT u.a) FROM u
SELECT (SELECT u.a AS z) + 1 FROM u
SELECT (SELECT max(b) FROM u WHERE u.a = t.a) FROM t
SELECT EXISTS (SELECT 1 FROM u WHERE u.a = t.a) FROM t
SELECT NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a) FROM t
SELECT a IN (SELECT u.a FROM u WHERE u.b = t.b) FROM t
SELECT a NOT IN (SELECT u.a FROM u WHERE u.b = t.b) FROM t
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND (y.b NOT IN (SELECT b FROM t) OR y.a > 5)
SELECT x.a, y.e FROM t x JOIN u y ON x.a = y.a AND (x.b NOT IN (SELECT b FROM u) OR y.a > 5)
SELECT x.a, y.e FROM t x JOIN u y ON x.a = y.a AND x.b NOT IN (SELECT b FROM u)
SELECT x.a, y.e FROM t x RIGHT JOIN u y ON x.a = y.a AND x.b NOT IN (SELECT b FROM u)
SELECT x.a FROM t x LEFT SEMI JOIN u y ON x.a = y.a AND x.b NOT IN (SELECT b FROM u)
SELECT x.a FROM t x LEFT SEMI JOIN u y ON x.a = y.a AND y.b NOT IN (SELECT b FROM t)
SELECT x.a FROM t x LEFT ANTI JOIN u y ON x.a = y.a AND y.b NOT IN (SELECT b FROM t)
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND (y.a, y.b) NOT IN (SELECT a, b FROM t)
SELECT x.a, y.e FROM t x LEFT JOIN u y ON EXISTS (SELECT 1 FROM u) AND x.a = y.a
SELECT x.a, y.e FROM t x LEFT JOIN u y ON x.a = y.a AND NOT EXISTS (SELECT 1 FROM u WHERE a > 100)
SELECT a, (a, b) NOT IN (SELECT a, b FROM u WHERE a IS NOT NULL) AS x FROM t
SELECT a, (a, b) NOT IN (SELECT a, b FROM u WHERE a IS NOT NULL AND b IS NOT NULL) AS x FROM t
SELECT a FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u WHERE a > 1) OR a = 5
SELECT a FROM t WHERE (a, b + 1) NOT IN (SELECT a, b FROM u WHERE u.b <> t.b) OR a = 5
SELECT a, b, sum(b) OVER (PARTITION BY a IN (SELECT a FROM u)) AS s FROM t
SELECT a, b FROM t ORDER BY (SELECT max(b) FROM u) - b, a LIMIT 3
SELECT a, explode(array(b, (SELECT max(b) FROM u))) AS x FROM t
SELECT a FROM u WHERE a IN (VALUES 1, 2)
(SELECT a FROM u) UNION (SELECT b FROM u)
((SELECT a FROM u) UNION ALL (SELECT b FROM u)) ORDER BY a LIMIT 3
(SELECT a FROM u ORDER BY a LIMIT 2) UNION ALL (SELECT b FROM u ORDER BY b LIMIT 1)
SELECT coalesce(x.a, y.a), x.c, y.c FROM (SELECT a, sum(sum(b)) OVER (PARTITION BY a ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS c FROM t GROUP BY a, b) x FULL JOIN (SELECT a, sum(sum(b)) OVER (PARTITION BY a ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS c FROM u GROUP BY a, b) y ON x.a = y.a AND x.c = y.c
SELECT * FROM t LEFT JOIN u USING (a) WHERE e IS NULL AND EXISTS (SELECT 1 FROM u WHERE t.b = u.b) AND (EXISTS (SELECT 1 FROM u v WHERE v.a = t.a) OR EXISTS (SELECT 1 FROM u w WHERE w.b > t.a))
SELECT a, max(b) AS m FROM t GROUP BY a HAVING max(b) > (SELECT avg(b) FROM u)
SELECT a, count(*) AS n FROM t GROUP BY a HAVING a IN (SELECT a FROM u) OR count(*) > 1
SELECT a, count(*) AS n FROM t GROUP BY a HAVING a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)
SELECT t.a, x.e FROM t JOIN (SELECT a, max(e) AS e FROM u GROUP BY a) x ON t.a = x.a AND t.b > (SELECT min(b) FROM u)
SELECT count(*) FROM (SELECT DISTINCT a FROM t INTERSECT SELECT DISTINCT a FROM u) x
SELECT a FROM t WHERE b > (SELECT 1.2 * avg(b) FROM u WHERE u.a = t.a) OR a IS NULL
SELECT CASE WHEN (SELECT count(*) FROM t WHERE b > 2) > 3 THEN (SELECT avg(b) FROM t) ELSE (SELECT max(b) FROM t) END AS x FROM u WHERE a = 1
WITH x AS (SELECT a, sum(b) AS s FROM t GROUP BY a) SELECT u.e FROM u, x WHERE u.a = x.a AND x.s > (SELECT avg(s) FROM x y WHERE y.a >= x.a)
SELECT x.a, y.e FROM t x JOIN u y ON (x.a = y.a AND EXISTS (SELECT 1 FROM u z WHERE z.a = x.b)) OR (x.b = y.b AND y.a > 1)
SELECT a, b FROM t WHERE (a, b) IN (SELECT a, max(b) FROM t GROUP BY a)
SELECT a, b FROM t o WHERE b = (SELECT max(b) FROM t i WHERE i.a = o.a)
SELECT a, (SELECT e FROM u WHERE u.a = t.a AND u.b = (SELECT max(b) FROM u)) AS e FROM t
SELECT a, b, (SELECT count(*) FROM t i WHERE i.a <= o.a) AS rank FROM t o
SELECT a FROM t WHERE a IN (SELECT a FROM u WHERE b IN (SELECT b FROM t WHERE c IS NOT NULL))
SELECT a FROM t WHERE NOT (a IN (SELECT a FROM u WHERE a > 1) AND b > 1)
SELECT sum(CASE WHEN a IN (SELECT a FROM u) THEN b ELSE 0 END) AS x, count(CASE WHEN NOT EXISTS (SELECT 1 FROM u WHERE u.b = t.b) THEN 1 END) AS y FROM t
SELECT (VALUES 1)
SELECT x.limit FROM (SELECT a AS limit FROM u) x
SELECT extend, `drop`, `set`, aggregate FROM (SELECT a AS extend, a AS drop, a AS set, a AS aggregate FROM u)
SELECT table FROM (SELECT a AS table FROM u)
SELECT range FROM (SELECT a AS range FROM u)
SELECT (SELECT max(b) FROM u WHERE u.a = t.a AND u.b > t.a) FROM t
SELECT (SELECT max(b) FROM u WHERE u.b > t.b AND u.a = t.a) FROM t
SELECT (SELECT max(b) FROM u WHERE u.a = t.s.x) FROM t
SELECT EXISTS (SELECT t.a FROM u WHERE u.b = t.b) FROM t
SELECT EXISTS (SELECT 1 FROM (SELECT * FROM u WHERE u.a = t.a) v JOIN u w ON v.b = w.b WHERE w.a = t.b) FROM t
SELECT x.a IN (SELECT u.a FROM u WHERE u.b = x.b OR u.b = x.a) FROM t x
SELECT a, (SELECT max(a) FROM u) + (SELECT min(u.a) FROM u WHERE u.b = t.b) FROM t
SELECT a, EXISTS (SELECT 1 FROM u WHERE u.b = t.b) AND a > 1 FROM t
SELECT coalesce((SELECT max(u.a) FROM u WHERE u.b = t.b), 0) FROM t
SELECT CASE WHEN a IN (SELECT a FROM u) THEN 1 END FROM t
SELECT a, (SELECT u.e FROM u WHERE u.a = t.a ORDER BY u.b LIMIT 1) FROM t
SELECT a FROM t WHERE (a, (SELECT max(b) FROM u)) IN (SELECT a, 9 FROM u)
SELECT (a, b) IN (SELECT a, b FROM u) FROM t
SELECT (a, b) NOT IN (SELECT a, b FROM u) FROM t
