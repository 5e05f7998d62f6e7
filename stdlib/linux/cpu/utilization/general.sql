-- What the other modules of CPU utilisation share: running spans with the CPU's frequency, and equal pieces of the trace.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE linux.cpu.frequency;

CREATE PERFETTO VIEW _cpu_freq_for_metrics AS
SELECT id, ts, dur, cpu, ucpu, freq
FROM cpu_frequency_counters
WHERE freq IS NOT NULL;

CREATE PERFETTO VIEW _sched_without_id AS
SELECT ts, dur, utid, ucpu
FROM sched
WHERE dur != -1 AND utid NOT IN (SELECT utid FROM thread WHERE is_idle);

CREATE VIRTUAL TABLE _cpu_freq_per_thread_span_join
USING SPAN_LEFT_JOIN(_sched_without_id PARTITIONED ucpu, _cpu_freq_for_metrics PARTITIONED ucpu);

-- Running spans cut where the frequency changed; freq is NULL where it is not known. id is that of the frequency's sample.
CREATE PERFETTO TABLE _cpu_freq_per_thread_no_id AS
SELECT ts, dur, ucpu, utid, id, cpu, freq
FROM _cpu_freq_per_thread_span_join;

-- The same with a number of its own for each row.
CREATE PERFETTO VIEW _cpu_freq_per_thread AS
SELECT _auto_id AS id, ts, dur, ucpu, cpu, utid, freq, id AS counter_id
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

-- The CPUs of all machines; those that the trace has nothing of count up to the last one that it has.
CREATE PERFETTO VIEW _cpu_count AS
SELECT sum(n) AS n FROM (SELECT max(cpu) + 1 AS n FROM cpu GROUP BY machine_id);

-- How long a span lasted without suspends; the span itself where the trace does not tell.
CREATE PERFETTO MACRO _awake_time(ts Expr, dur Expr)
RETURNS Expr AS coalesce(to_monotonic($ts + $dur) - to_monotonic($ts), $dur);

-- The columns awake_dur, awake_utilization and awake_unnormalized_utilization of time on CPUs in a window, in per cent of its
-- length without suspends: the second of the time of all CPUs, the third of that of one.
CREATE PERFETTO MACRO _cpu_utilization_columns(
  -- Time on CPUs without suspends.
  awake_runtime Expr,
  -- The window.
  window_ts Expr,
  window_dur Expr,
  -- Digits behind the point.
  digits Expr
)
RETURNS _ProjectionFragment AS
  $awake_runtime AS awake_dur,
  round(
    $awake_runtime * 100.0 / _awake_time!($window_ts, $window_dur) / (SELECT n FROM _cpu_count),
    $digits
  ) AS awake_utilization,
  round(
    $awake_runtime * 100.0 / _awake_time!($window_ts, $window_dur),
    $digits
  ) AS awake_unnormalized_utilization;

-- Where the piece of a given length begins that holds a time; pieces begin at multiples of their length.
CREATE PERFETTO FUNCTION _partition_start(
  ts TIMESTAMP,
  size LONG
)
RETURNS LONG AS
SELECT $ts / $size * $size;

-- How many pieces hold the trace, its end included.
CREATE PERFETTO FUNCTION _partition_count(
  size LONG
)
RETURNS LONG AS
SELECT (_partition_start(trace_end(), $size) - _partition_start(trace_start(), $size)) / $size + 1;

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

-- Each span with the piece that it begins in, cut at its end: (partition_ts, ts_end, ts).
CREATE PERFETTO MACRO _interval_partitions(
  -- Pieces: ts, ts_end.
  partitions TableOrSubquery,
  -- Spans: ts, ts_end.
  intervals TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT p.ts AS partition_ts, min(i.ts_end, p.ts_end) AS ts_end, max(i.ts, p.ts) AS ts
  FROM $intervals AS i
  JOIN $partitions AS p ON p.ts <= i.ts AND i.ts < p.ts_end
);

-- How much of the CPUs' time running spans take in each piece of the trace in which any begin: (ts, utilization,
-- unnormalized_utilization). As in Perfetto, a span counts for the piece that it begins in, up to its end.
CREATE PERFETTO MACRO _cpu_avg_utilization_per_period(
  -- Length of a piece.
  interval Expr,
  -- Running spans: ts, ts_end.
  sched_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    ts,
    dur / (
      CAST($interval AS DOUBLE) * (SELECT sum(n) FROM (SELECT max(ucpu % 4096) + 1 AS n FROM sched GROUP BY ucpu / 4096))
    ) AS utilization,
    dur / CAST($interval AS DOUBLE) AS unnormalized_utilization
  FROM (
    SELECT partition_ts AS ts, sum(min(ts_end, partition_ts + $interval) - ts) AS dur
    FROM (SELECT _partition_start(s.ts, $interval) AS partition_ts, s.ts, s.ts_end FROM $sched_table AS s)
    GROUP BY partition_ts
  )
);

-- Cycles and frequencies of parts of running spans: the columns millicycles, megacycles, runtime, min_freq, max_freq, avg_freq;
-- the last one counts no time of unknown frequency.
CREATE PERFETTO MACRO _cpu_cycles_columns(
  dur Expr,
  freq Expr
)
RETURNS _ProjectionFragment AS
sum($dur * $freq / 1000) AS millicycles,
sum($dur * $freq / 1000) / 1000000000 AS megacycles,
sum($dur) AS runtime,
min($freq) AS min_freq,
max($freq) AS max_freq,
sum($dur * $freq / 1000) / (sum(iif($freq IS NULL, NULL, $dur)) / 1000) AS avg_freq;

-- The same of rows of cpu_cycles_per_thread_per_cpu; avg_freq is of all the time, whether the frequency is known or not.
CREATE PERFETTO MACRO _cpu_cycles_sums()
RETURNS _ProjectionFragment AS
sum(millicycles) AS millicycles,
sum(millicycles) / 1000000000 AS megacycles,
sum(runtime) AS runtime,
min(min_freq) AS min_freq,
max(max_freq) AS max_freq,
sum(millicycles) / (sum(runtime) / 1000) AS avg_freq;
