-- CPU cycles of slices on threads.

INCLUDE PERFETTO MODULE linux.cpu.utilization.general;
INCLUDE PERFETTO MODULE slices.with_context;

-- Cycles of each slice's thread while the slice was open, of slices in which it ran all the time at known frequencies; NULL for
-- others.
CREATE PERFETTO TABLE cpu_cycles_per_thread_slice(
  -- Row of slice.
  id JOINID(slice.id),
  -- Name of the slice.
  name STRING,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Thousandths of cycles; NULL when the frequency is not known.
  millicycles LONG,
  -- Millions of cycles.
  megacycles LONG
) AS
WITH
  counted AS (
    SELECT
      i.id_0 AS slice_id,
      sum(i.dur) AS dur,
      sum(i.dur * f.freq / 1000) AS millicycles,
      sum(i.dur * f.freq / 1000) / 1000000000 AS megacycles
    FROM _interval_intersect!(
      (
        (SELECT id, ts, dur, utid FROM thread_slice WHERE dur > 0 AND utid > 0),
        (SELECT id, ts, dur, utid FROM _cpu_freq_per_thread)
      ),
      (utid)
    ) AS i
    JOIN _cpu_freq_per_thread AS f ON f.id = i.id_1
    WHERE f.freq IS NOT NULL
    GROUP BY i.id_0
  )
SELECT s.id, s.name, s.utid, s.thread_name, s.upid, s.process_name, c.millicycles, c.megacycles
FROM thread_slice AS s
LEFT JOIN counted AS c ON c.slice_id = s.id AND c.dur = s.dur;

-- The same for the part of each slice that lies in a window.
CREATE PERFETTO FUNCTION cpu_cycles_per_thread_slice_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur DURATION
)
RETURNS TABLE(
  -- Row of slice.
  id JOINID(slice.id),
  -- Name of the slice.
  name STRING,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Thousandths of cycles; NULL when the frequency is not known.
  millicycles LONG,
  -- Millions of cycles.
  megacycles LONG
) AS
WITH
  cut AS MATERIALIZED (
    SELECT i.id, i.ts, i.dur, s.utid
    FROM _interval_intersect_single!($ts, $dur, (SELECT id, ts, dur FROM thread_slice WHERE dur > 0 AND utid > 0)) AS i
    JOIN thread_slice AS s USING (id)
  ),
  counted AS (
    SELECT
      i.id_0 AS slice_id,
      sum(i.dur) AS dur,
      sum(i.dur * f.freq / 1000) AS millicycles,
      sum(i.dur * f.freq / 1000) / 1000000000 AS megacycles
    FROM _interval_intersect!((cut, (SELECT id, ts, dur, utid FROM _cpu_freq_per_thread)), (utid)) AS i
    JOIN _cpu_freq_per_thread AS f ON f.id = i.id_1
    WHERE f.freq IS NOT NULL
    GROUP BY i.id_0
  )
SELECT s.id, s.name, s.utid, s.thread_name, s.upid, s.process_name, c.millicycles, c.megacycles
FROM cut AS k
JOIN thread_slice AS s USING (id)
LEFT JOIN counted AS c ON c.slice_id = k.id AND c.dur = k.dur;
