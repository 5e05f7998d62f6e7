-- The threads that draw for applications.

CREATE PERFETTO TABLE _android_render_thread AS
SELECT utid, upid, tid FROM thread WHERE name = 'RenderThread';
