-- Tables that are there before the trace is.

-- Metrics of the first generation, by name; none.
CREATE PERFETTO TABLE _trace_metrics(
  -- Its name.
  name STRING
)
AS
SELECT '' AS name WHERE 0;
