-- a script: it stops at its first error
SELECT count(*) AS orders FROM orders;
SELECT nope
FROM orders;
SELECT 'never' AS reached;
