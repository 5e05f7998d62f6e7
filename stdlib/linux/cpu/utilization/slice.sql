-- CPU cycles of slices on threads.

INCLUDE PERFETTO MODULE linux.cpu.utilization.general;
INCLUDE PERFETTO MODULE slices.with_context;

-- Cycles of each slice's thread while the slice was open.
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
SELECT
  s.id,
  s.name,
  s.utid,
  s.thread_name,
  s.upid,
  s.process_name,
  CAST(sum(ii.dur * c.freq / 1000) AS INT) AS millicycles,
  CAST(sum(ii.dur * c.freq / 1000) / 1000000000 AS INT) AS megacycles
FROM _interval_intersect!(
  (
    (SELECT id, ts, dur, utid FROM thread_slice WHERE dur > 0),
    (SELECT id, ts, dur, utid FROM _cpu_freq_per_thread)
  ),
  (utid)
) AS ii
JOIN thread_slice AS s ON s.id = ii.id_0
JOIN _cpu_freq_per_thread AS c ON c.id = ii.id_1
GROUP BY s.id;

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
SELECT
  s.id,
  s.name,
  s.utid,
  s.thread_name,
  s.upid,
  s.process_name,
  CAST(sum(ii.dur * c.freq / 1000) AS INT) AS millicycles,
  CAST(sum(ii.dur * c.freq / 1000) / 1000000000 AS INT) AS megacycles
FROM _interval_intersect!(
  (
    (
      SELECT ii.id, ii.ts, ii.dur, s.utid
      FROM _interval_intersect_single!(
        $ts, $dur,
        (SELECT id, ts, dur FROM thread_slice WHERE dur > 0)
      ) AS ii
      JOIN thread_slice AS s USING (id)
    ),
    (SELECT id, ts, dur, utid FROM _cpu_freq_per_thread)
  ),
  (utid)
) AS ii
JOIN thread_slice AS s ON s.id = ii.id_0
JOIN _cpu_freq_per_thread AS c ON c.id = ii.id_1
GROUP BY s.id;
