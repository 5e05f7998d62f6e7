-- What the other modules of CPU utilisation share: running spans with the CPU's frequency, and equal pieces of the trace.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE linux.cpu.frequency;

CREATE PERFETTO VIEW _cpu_freq_for_metrics AS
SELECT id, ts, dur, ucpu, freq
FROM cpu_frequency_counters
WHERE freq IS NOT NULL AND dur > 0;

CREATE PERFETTO VIEW _sched_without_id AS
SELECT s.ts, s.dur, s.utid, s.ucpu
FROM sched AS s
JOIN thread AS t USING (utid)
WHERE s.dur > 0 AND NOT coalesce(t.is_idle, 0);

CREATE VIRTUAL TABLE _cpu_freq_per_thread_span_join
USING SPAN_LEFT_JOIN(_sched_without_id PARTITIONED ucpu, _cpu_freq_for_metrics PARTITIONED ucpu);

-- Running spans cut where the frequency changed; freq is NULL where it is not known.
CREATE PERFETTO TABLE _cpu_freq_per_thread_no_id AS
SELECT ts, dur, ucpu, utid, freq
FROM _cpu_freq_per_thread_span_join
ORDER BY ts;

-- The same with a number of its own for each row.
CREATE PERFETTO VIEW _cpu_freq_per_thread AS
SELECT _auto_id AS id, ts, dur, ucpu, utid, freq
FROM _cpu_freq_per_thread_no_id;

-- The parts of those within a window, cut at its ends: (ts, dur, ucpu, utid, freq).
CREATE PERFETTO MACRO _cpu_freq_in_window(
  ts Expr,
  dur Expr
)
RETURNS TableOrSubquery AS
(
  SELECT i.ts, i.dur, f.ucpu, f.utid, f.freq
  FROM _interval_intersect_single!($ts, $dur, (SELECT id, ts, dur FROM _cpu_freq_per_thread)) AS i
  JOIN _cpu_freq_per_thread AS f USING (id)
);

-- The columns awake_dur, awake_utilization and awake_unnormalized_utilization of running spans in a window: the second of
-- the time of all CPUs, the third counted in CPUs.
CREATE PERFETTO MACRO _cpu_utilization_columns(
  run_dur Expr,
  window_dur Expr
)
RETURNS _ProjectionFragment AS
  sum($run_dur) AS awake_dur,
  sum($run_dur) * 1.0 / ($window_dur * (SELECT max(count(DISTINCT ucpu), 1) FROM sched)) AS awake_utilization,
  sum($run_dur) * 1.0 / $window_dur AS awake_unnormalized_utilization;

-- Where the piece of a given length begins that holds a time; pieces begin at multiples of their length.
CREATE PERFETTO FUNCTION _partition_start(
  ts TIMESTAMP,
  size LONG
)
RETURNS LONG AS
SELECT $ts / $size * $size;

-- How many pieces hold the trace.
CREATE PERFETTO FUNCTION _partition_count(
  size LONG
)
RETURNS LONG AS
SELECT (_partition_start(trace_end() - 1, $size) - _partition_start(trace_start(), $size)) / $size + 1;

-- The pieces themselves.
CREATE PERFETTO FUNCTION _partitions(
  size LONG
)
RETURNS TABLE(
  ts TIMESTAMP,
  ts_end LONG
) AS
SELECT ts, ts + $size AS ts_end
FROM __intrinsic_window(
  _partition_start(trace_start(), $size),
  _partition_count($size) * $size,
  $size
);

-- Each span cut into the pieces that it lies in: (partition_ts, dur).
CREATE PERFETTO MACRO _interval_partitions(
  -- Pieces: ts, ts_end.
  partitions TableOrSubquery,
  -- Spans: ts, dur.
  intervals TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT id_0 AS partition_ts, dur
  FROM _interval_intersect!(
    (
      (SELECT ts AS id, ts, ts_end - ts AS dur FROM $partitions),
      (SELECT row_number() OVER () AS id, ts, dur FROM $intervals WHERE dur > 0)
    ),
    ()
  )
);

-- How much of the CPUs' time running spans take in each piece of the trace: (ts, utilization, unnormalized_utilization).
CREATE PERFETTO MACRO _cpu_avg_utilization_per_period(
  -- Length of a piece.
  interval Expr,
  -- Running spans: ts, dur.
  sched_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    p.ts,
    coalesce(i.dur, 0) * 1.0 / ($interval * (SELECT max(count(DISTINCT ucpu), 1) FROM sched)) AS utilization,
    coalesce(i.dur, 0) * 1.0 / $interval AS unnormalized_utilization
  FROM _partitions($interval) AS p
  LEFT JOIN (
    SELECT partition_ts, sum(dur) AS dur
    FROM _interval_partitions!(_partitions($interval), $sched_table)
    GROUP BY partition_ts
  ) AS i ON i.partition_ts = +p.ts -- no affinity, as that of partition_ts: else SQLite makes no index
  ORDER BY p.ts
);

-- Cycles and frequencies of running spans: the columns millicycles, megacycles, runtime, min_freq, max_freq, avg_freq.
CREATE PERFETTO MACRO _cpu_cycles_columns(
  -- Length of a span.
  dur Expr,
  -- Its frequency.
  freq Expr
)
RETURNS _ProjectionFragment AS
CAST(sum($dur * $freq / 1000) AS INT) AS millicycles,
CAST(sum($dur * $freq / 1000) / 1000000000 AS INT) AS megacycles,
sum($dur) AS runtime,
min($freq) AS min_freq,
max($freq) AS max_freq,
CAST(sum($dur * $freq) / sum(iif($freq IS NULL, NULL, $dur)) AS INT) AS avg_freq;
