\set account random(1, 100000 * :scale)
\set first random(1, 90000 * :scale)
\set amount random(-500, 500)
SELECT abalance FROM pgbench_accounts WHERE aid = :account;
SELECT bid, sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 2000 GROUP BY bid ORDER BY 2 DESC;
UPDATE pgbench_accounts SET abalance = abalance + :amount WHERE aid = :account;
