-- Threads with what is known of their processes.

CREATE PERFETTO TABLE _thread_with_process AS
SELECT t.utid, t.tid, t.name AS thread_name, t.is_main_thread, t.machine_id, t.upid, p.pid, p.name AS process_name
FROM thread AS t
LEFT JOIN process AS p USING (upid);
