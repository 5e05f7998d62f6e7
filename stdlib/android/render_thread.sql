-- The threads that draw for applications.

CREATE PERFETTO TABLE _android_render_thread AS
SELECT utid, upid, tid FROM thread WHERE name = 'RenderThread';

-- By process; one with several has a row for each.
CREATE PERFETTO VIEW _render_thread_per_process AS
SELECT upid, utid AS render_thread_utid FROM _android_render_thread;
