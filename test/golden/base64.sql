-- trace: linux-deflate.pftrace
WITH t(text) AS (VALUES (''), ('f'), ('fo'), ('foo'), ('foob'), ('fooba'), ('foobar'), (x'fbefbe'), (x'00ff10'), (NULL))
SELECT hex(text) AS bytes, base64_encode(text) AS encoded, hex(base64_decode(base64_encode(text))) = hex(text) AS back FROM t;
WITH t(text) AS (VALUES (''), ('Zg=='), ('Zg='), ('Zg'), ('Zh'), ('Zm9v'), ('Zm9vYg'), ('--_-'), ('++/+'), ('-+/_'), ('Z'),
  ('Zm9vY'), ('Zm 9v'), ('Zm9v' || char(10)), ('Zm9*'), ('=Zm9'), ('Zm=9'), ('===='), (char(228)), (NULL))
SELECT text, hex(base64_decode(text)) AS bytes, base64_decode(text) IS NULL AS refused FROM t;
