-- What the metadata says of each trace of the file, one row a trace.

CREATE PERFETTO TABLE _metadata_by_trace(
  trace_id LONG,
  unique_session_name STRING,
  trace_uuid STRING,
  trace_type STRING,
  trace_size_bytes LONG,
  trace_trigger STRING,
  machines STRING
) AS
SELECT
  t.trace_id,
  max(iif(m.name = 'unique_session_name', m.str_value, NULL)) AS unique_session_name,
  max(iif(m.name = 'trace_uuid', m.str_value, NULL)) AS trace_uuid,
  max(iif(m.name = 'trace_type', m.str_value, NULL)) AS trace_type,
  max(iif(m.name = 'trace_size_bytes', m.int_value, NULL)) AS trace_size_bytes,
  max(iif(m.name = 'trace_trigger', m.str_value, NULL)) AS trace_trigger,
  (
    SELECT group_concat(name, ', ')
    FROM (
      SELECT coalesce(k.name, k.sysname) AS name
      FROM machine AS k
      WHERE k.id IN (SELECT x.machine_id FROM metadata AS x WHERE x.trace_id = t.trace_id)
      ORDER BY k.id
    )
  ) AS machines
FROM (SELECT DISTINCT trace_id FROM metadata WHERE trace_id IS NOT NULL) AS t
JOIN metadata AS m ON m.trace_id = t.trace_id OR m.trace_id IS NULL
GROUP BY t.trace_id;
