-- Requests of OpenTelemetry, and what spans spent by themselves.

-- The time of each span in which none of its children was under way.
CREATE PERFETTO TABLE otel_span_self_dur(
  -- Row of otel_span.
  span_id LONG,
  -- Name of the span.
  name STRING,
  -- Service that it ran in.
  service STRING,
  -- Time in the span, in nanoseconds; to the end of the trace when it has no end.
  dur DURATION,
  -- What of that no child covers.
  self_dur DURATION
) AS
WITH
  spans AS (
    SELECT id, parent_id, name, service, ts, ts + iif(dur = -1, max(trace_end() - ts, 0), dur) AS te
    FROM otel_span
  ),
  -- children as far as they lie within their parents, and how far those before them reach
  children AS (
    SELECT
      p.id,
      max(c.ts, p.ts) AS ts,
      min(c.te, p.te) AS te,
      max(min(c.te, p.te)) OVER (
        PARTITION BY p.id
        ORDER BY max(c.ts, p.ts), c.id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached
    FROM spans AS c
    JOIN spans AS p ON p.id = c.parent_id
    WHERE min(c.te, p.te) > max(c.ts, p.ts)
  ),
  covered AS (
    SELECT id, sum(max(te - max(ts, coalesce(reached, ts)), 0)) AS dur
    FROM children
    GROUP BY id
  )
SELECT
  s.id AS span_id,
  s.name,
  s.service,
  s.te - s.ts AS dur,
  s.te - s.ts - coalesce(c.dur, 0) AS self_dur
FROM spans AS s
LEFT JOIN covered AS c USING (id)
ORDER BY s.id;

-- One row for each request: a span without a parent, or whose parent is in none of the files, and all that it caused.
CREATE PERFETTO TABLE otel_request(
  -- Row of otel_span: the first span.
  span_id LONG,
  -- Id of the trace, 32 hexadecimal digits.
  trace_id STRING,
  -- When the request started.
  ts TIMESTAMP,
  -- Nanoseconds until the first span ended; -1 when it did not.
  dur DURATION,
  -- Name of the first span.
  name STRING,
  -- Service of the first span.
  service STRING,
  -- How many spans there are, the first one included.
  span_count LONG,
  -- In how many services.
  service_count LONG,
  -- On how many machines.
  machine_count LONG,
  -- How many spans ended with an error.
  error_count LONG
) AS
WITH RECURSIVE
  tree(root_id, id, depth) AS (
    SELECT id, id, 0
    FROM otel_span
    WHERE parent_id IS NULL
    UNION ALL
    SELECT t.root_id, c.id, t.depth + 1
    FROM tree AS t
    JOIN otel_span AS c ON c.parent_id = t.id
    WHERE t.depth < 512
  )
SELECT
  r.id AS span_id,
  r.trace_id,
  r.ts,
  r.dur,
  r.name,
  r.service,
  count(*) AS span_count,
  count(DISTINCT s.service) AS service_count,
  count(DISTINCT s.machine_id) AS machine_count,
  sum(s.status = 'error') AS error_count
FROM tree AS t
JOIN otel_span AS s ON s.id = t.id
JOIN otel_span AS r ON r.id = t.root_id
GROUP BY r.id
ORDER BY r.id;
