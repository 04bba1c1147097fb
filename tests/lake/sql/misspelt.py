"""Statements with one misspelt column or keyword each, and what stands at that place. For tests."""

import pytest

import lakevilla as lv

SETUP = (
    "CREATE TABLE accounts (id BIGINT NOT NULL, balance INT, name STRING)",
    "INSERT INTO accounts VALUES (1, 10, 'a'), (2, 20, 'b')",
    "CREATE TABLE orders (id BIGINT, account BIGINT, price INT)",
    "INSERT INTO orders VALUES (1, 1, 5)",
)

COLUMNS = """
SELECT blance FROM accounts
SELECT id FROM accounts WHERE blance > 1
SELECT name, count(*) FROM accounts GROUP BY nmae
SELECT name, count(*) FROM accounts GROUP BY name HAVING sum(blance) > 1
SELECT id FROM accounts ORDER BY blance
SELECT a.id FROM accounts a JOIN orders o ON a.id = o.acount
SELECT a.id FROM accounts a JOIN orders o USING (idd)
SELECT row_number() OVER (PARTITION BY nmae ORDER BY id) AS n FROM accounts
SELECT row_number() OVER (ORDER BY blance) AS n FROM accounts
SELECT CASE WHEN blance > 1 THEN 1 END AS c FROM accounts
SELECT upper(nmae) FROM accounts
SELECT id FROM accounts WHERE id IN (SELECT acount FROM orders)
SELECT id FROM accounts a WHERE EXISTS (SELECT 1 FROM orders o WHERE o.acount = a.id)
SELECT x.blance FROM (SELECT balance FROM accounts) x
WITH x AS (SELECT blance FROM accounts) SELECT * FROM x
SELECT sum(balance) FILTER (WHERE blance > 1) FROM accounts
SELECT id FROM accounts UNION ALL SELECT prcie FROM orders
INSERT INTO accounts (id, blance) VALUES (3, 1)
INSERT INTO orders SELECT id, id, blance FROM accounts
INSERT INTO accounts REPLACE WHERE blance = 1 SELECT * FROM accounts
UPDATE accounts SET blance = 1
UPDATE accounts SET balance = blance + 1
UPDATE accounts SET balance = 1 WHERE nmae = 'a'
UPDATE accounts SET balance = (SELECT max(prcie) FROM orders)
DELETE FROM accounts WHERE blance = 1
MERGE INTO accounts t USING orders s ON t.idd = s.id WHEN MATCHED THEN DELETE
MERGE INTO accounts t USING orders s ON t.id = s.id WHEN MATCHED AND s.prcie > 1 THEN DELETE
MERGE INTO accounts t USING orders s ON t.id = s.id WHEN MATCHED THEN UPDATE SET blance = 1
MERGE INTO accounts t USING orders s ON t.id = s.id WHEN MATCHED THEN UPDATE SET balance = s.prcie
MERGE INTO accounts t USING orders s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, blance) VALUES (s.id, 1)
MERGE INTO accounts t USING orders s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.prcie)
CREATE TABLE n (id INT, name STRING) PARTITIONED BY (nmae)
CREATE TABLE n AS SELECT blance FROM accounts
CREATE OR REPLACE TABLE orders AS SELECT blance FROM accounts
CREATE VIEW n AS SELECT blance FROM accounts
ALTER TABLE accounts ADD CONSTRAINT c CHECK (blance > 0)
ALTER TABLE accounts DROP COLUMNS (blance)
ALTER TABLE accounts RENAME COLUMN blance TO x
""".strip().splitlines()
"""A column in each clause that can name one."""

WRONG = ("blance", "nmae", "acount", "idd", "prcie")

KEYWORDS = [
    ("DROP TALE accounts", "TALE"),
    ("TRUNCATE TABL accounts", "TABL"),
    ("CREATE TTABLE n (id INT)", "TTABLE"),
    ("CREATE TABLE n (id INT) USINNG delta", "USINNG"),
    ("CREATE TABLE n (id INT) USING detla", "detla"),
    ("ALTER TABLE accounts AD COLUMNS (x INT)", "AD"),
    ("ALTER TABLE accounts DROP COLUNMS (id)", "COLUNMS"),
    ("ALTER TABLE accounts ADD CONSTRAINT c CHEC (id > 0)", "CHEC"),
    ("SELECT id FROM FROM accounts", "FROM"),
    ("SELECT id FROM accounts WHERE id IS NOT NUL", "NUL"),
    ("SELECT CSAT(id AS INT) FROM accounts", "CSAT"),
    ("ATG x", "ATG"),
    ("USE prod", "USE"),
]
"""A keyword, and the word that is pointed at."""


def check_column(lake: lv.Lake, text: str) -> None:
    """One of `COLUMNS` fails, points at the misspelt column, and suggests another."""
    wrong = next(name for name in WRONG if name in text)
    with pytest.raises(lv.InvalidInput, match="did you mean") as error:
        lake.sql(text)
    found = error.value.position
    assert found is not None
    assert text[found.start : found.end].rpartition(".")[2] == wrong


def refuse_half_rows(lake: lv.Lake) -> None:
    """A MERGE whose star needs a column that its source lacks says so."""
    text = "MERGE INTO accounts t USING (SELECT 1 AS id) s ON t.id = s.id "
    for clause in ("WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *"):
        with pytest.raises(
            lv.InvalidInput, match=r"the source of the MERGE has no column 'balance'.*: 'id'"
        ) as error:
            lake.sql(text + clause)
        assert error.value.column == "balance"
