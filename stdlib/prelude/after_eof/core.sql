-- Bounds of the trace.

CREATE VIEW trace_metrics AS
SELECT name
FROM (SELECT NULL AS name)
WHERE 0;

CREATE VIEW trace_bounds AS
SELECT start_ts, end_ts
FROM _trace_bounds;
