-- Bounds of the trace.

-- Metrics of the first generation; there are none, summaries took their place.
CREATE PERFETTO VIEW trace_metrics(
  -- Its name.
  name STRING
)
AS
SELECT name
FROM _trace_metrics;

-- From when to when the trace has events; one row.
CREATE PERFETTO VIEW trace_bounds(
  -- Time of the first event.
  start_ts TIMESTAMP,
  -- Time of the last event.
  end_ts TIMESTAMP
)
AS
SELECT start_ts, end_ts
FROM _trace_bounds;
