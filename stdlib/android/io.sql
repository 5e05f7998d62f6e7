-- What the flash file system f2fs wrote.

-- Counters of f2fs, of each device by itself: (name, sum, max, min, dur, count, avg).
CREATE PERFETTO VIEW _android_io_f2fs_counter_stats AS
SELECT
  str_split(t.name, '].', 1) AS name,
  sum(c.value) AS sum,
  max(c.value) AS max,
  min(c.value) AS min,
  max(c.ts) - min(c.ts) AS dur,
  count() AS count,
  avg(c.value) AS avg
FROM counter_track AS t
JOIN counter AS c ON c.track_id = t.id
WHERE t.name GLOB '*f2fs*'
GROUP BY t.name
ORDER BY sum DESC, t.name DESC;

-- Ends of writes of threads whose process is known: (utid, ino, dev, len, copied, machine_id).
CREATE PERFETTO VIEW _android_io_f2fs_writes AS
SELECT
  e.utid,
  extract_arg(e.arg_set_id, 'ino') AS ino,
  extract_arg(e.arg_set_id, 'dev') AS dev,
  extract_arg(e.arg_set_id, 'len') AS len,
  extract_arg(e.arg_set_id, 'copied') AS copied,
  t.machine_id
FROM ftrace_event AS e
JOIN thread AS t USING (utid)
WHERE e.name GLOB 'f2fs_write_end*' AND t.upid IS NOT NULL;

-- What each thread wrote into each file: (utid, tid, thread_name, upid, pid, process_name, ino, dev, bytes, write_count).
CREATE PERFETTO VIEW _android_io_f2fs_write_stats AS
SELECT
  w.utid,
  t.tid,
  t.name AS thread_name,
  t.upid,
  p.pid,
  p.name AS process_name,
  w.ino,
  w.dev,
  sum(w.copied) AS bytes,
  count(w.len) AS write_count
FROM _android_io_f2fs_writes AS w
JOIN thread AS t USING (utid)
JOIN process AS p USING (upid)
GROUP BY w.utid, w.ino, w.dev
ORDER BY bytes DESC;

-- All of it in one row; files and devices of two machines are not the same.
CREATE PERFETTO VIEW _android_io_f2fs_aggregate_write_stats AS
SELECT
  sum(w.len IS NOT NULL) AS total_write_count,
  count(DISTINCT t.upid) AS distinct_processes,
  sum(w.copied) AS total_bytes_written,
  count(DISTINCT w.machine_id || ' ' || w.dev) AS distinct_device_count,
  count(DISTINCT w.machine_id || ' ' || w.dev || ' ' || w.ino) AS distinct_inode_count,
  count(DISTINCT w.utid) AS distinct_thread_count
FROM _android_io_f2fs_writes AS w
JOIN thread AS t USING (utid);
