-- What the metadata says of each trace of the file, one row a trace; machines by the names of their systems, or else by number.

CREATE PERFETTO TABLE _metadata_by_trace(
  trace_id LONG,
  unique_session_name STRING,
  trace_uuid STRING,
  trace_type STRING,
  trace_size_bytes LONG,
  trace_trigger STRING,
  machines STRING
) AS
WITH
  traces AS (SELECT DISTINCT trace_id FROM metadata WHERE trace_id IS NOT NULL),
  places AS (
    SELECT trace_id, machine_id, min(id) AS first
    FROM metadata
    WHERE trace_id IS NOT NULL AND machine_id IS NOT NULL
    GROUP BY trace_id, machine_id
  )
SELECT
  t.trace_id,
  extract_metadata_for_trace(t.trace_id, 'unique_session_name') AS unique_session_name,
  extract_metadata_for_trace(t.trace_id, 'trace_uuid') AS trace_uuid,
  extract_metadata_for_trace(t.trace_id, 'trace_type') AS trace_type,
  extract_metadata_for_trace(t.trace_id, 'trace_size_bytes') AS trace_size_bytes,
  extract_metadata_for_trace(t.trace_id, 'trace_trigger') AS trace_trigger,
  coalesce(
    (
      SELECT
        group_concat(
          coalesce(extract_metadata_for_machine(p.machine_id, 'system_name'), 'Machine ' || p.machine_id), ', '
          ORDER BY p.first
        )
      FROM places AS p
      WHERE p.trace_id = t.trace_id
    ),
    ''
  ) AS machines
FROM traces AS t;
