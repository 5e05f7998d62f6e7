-- One entry of each name: that of the first trace and machine that tell one.

CREATE PERFETTO TABLE _metadata_for_primary_scope(
  name STRING,
  str_value STRING,
  int_value LONG,
  key_type STRING
) AS
SELECT name, str_value, int_value, key_type
FROM (
  SELECT *, row_number() OVER (PARTITION BY name ORDER BY trace_id NULLS LAST, machine_id NULLS LAST) AS place
  FROM metadata
)
WHERE place = 1;
