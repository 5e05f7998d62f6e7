-- The trace as a profile for https://profiler.firefox.com: call stacks of CPU profilers as samples, slices of threads as
-- markers. In a shell: tp_shell query TRACE 'INCLUDE PERFETTO MODULE export.to_firefox_profile; SELECT
-- export_to_firefox_profile()' --format jsonl, or SELECT CAST(export_to_firefox_profile() AS BLOB) in the web UI, which
-- offers a blob as a file.
--
-- Written in the processed format, version 48. Its tables are columns of equal length that refer to each other by position;
-- all of a thread's are its own.

INCLUDE PERFETTO MODULE stacks.cpu_profiling;

-- ms since the trace's start, as profiles count.
CREATE PERFETTO MACRO _firefox_ms(
  -- Trace time.
  ts Expr
)
RETURNS Expr AS (round(($ts - trace_start()) / 1e6, 6));

-- Functions of a frame from the outermost (0) inwards; without symbols one: (frame_id, inline_depth, is_innermost, name,
-- file, line, mapping).
CREATE PERFETTO TABLE _firefox_functions AS
WITH
  used AS (SELECT DISTINCT frame_id FROM stack_profile_callsite)
SELECT
  f.id AS frame_id,
  iif(s.id IS NULL, 0, row_number() OVER (PARTITION BY f.id ORDER BY s.id DESC) - 1) AS inline_depth,
  row_number() OVER (PARTITION BY f.id ORDER BY s.id) = 1 AS is_innermost,
  coalesce(s.name, f.deobfuscated_name, nullif(f.name, ''), m.name || '+' || printf('0x%x', f.rel_pc), '?') AS name,
  s.source_file AS file,
  s.line_number AS line,
  nullif(m.name, '') AS mapping
FROM used AS u
JOIN stack_profile_frame AS f ON f.id = u.frame_id
LEFT JOIN stack_profile_symbol AS s ON s.symbol_set_id = f.symbol_set_id
LEFT JOIN stack_profile_mapping AS m ON m.id = f.mapping;

-- Call sites on the stacks of each thread.
CREATE PERFETTO TABLE _firefox_callsites AS
WITH RECURSIVE
  sites(utid, id) AS (
    SELECT DISTINCT utid, callsite_id FROM cpu_profiling_samples WHERE utid IS NOT NULL
    UNION
    SELECT s.utid, c.parent_id
    FROM sites AS s
    JOIN stack_profile_callsite AS c USING (id)
    WHERE c.parent_id IS NOT NULL
  )
SELECT s.utid, s.id AS callsite_id, c.parent_id, c.frame_id
FROM sites AS s
JOIN stack_profile_callsite AS c USING (id)
ORDER BY s.utid, s.id;

-- Stacks: a call site's functions one below the other. A call site has a higher number than those that called it, so a
-- stack stands behind the one that it goes on from, as the format wants it.
CREATE PERFETTO TABLE _firefox_stacks AS
SELECT
  c.utid,
  row_number() OVER (PARTITION BY c.utid ORDER BY c.callsite_id, f.inline_depth) - 1 AS idx,
  c.callsite_id,
  c.parent_id,
  c.frame_id,
  f.inline_depth,
  f.is_innermost,
  f.name,
  f.file,
  f.line,
  f.mapping
FROM _firefox_callsites AS c
JOIN _firefox_functions AS f USING (frame_id)
ORDER BY c.utid, idx;

-- Where a call site's own stack ends: (utid, callsite_id, idx).
CREATE PERFETTO TABLE _firefox_ends AS
SELECT utid, callsite_id, max(idx) AS idx FROM _firefox_stacks GROUP BY utid, callsite_id;

-- Slices of threads.
CREATE PERFETTO TABLE _firefox_markers AS
SELECT t.utid, s.ts, s.dur, coalesce(s.name, '?') AS name, s.category, s.arg_set_id
FROM slice AS s
JOIN thread_track AS t ON t.id = s.track_id
ORDER BY t.utid, s.ts, s.id;

-- Texts of each thread: (utid, text, idx).
CREATE PERFETTO TABLE _firefox_strings AS
WITH
  texts AS (
    SELECT utid, name AS text FROM _firefox_stacks
    UNION
    SELECT utid, file FROM _firefox_stacks WHERE file IS NOT NULL
    UNION
    SELECT utid, mapping FROM _firefox_stacks WHERE mapping IS NOT NULL
    UNION
    SELECT utid, name FROM _firefox_markers
  )
SELECT utid, text, row_number() OVER (PARTITION BY utid ORDER BY text) - 1 AS idx
FROM texts
ORDER BY utid, idx;

-- Files with code, functions, and frames of each thread, each with its position.
CREATE PERFETTO TABLE _firefox_resources AS
SELECT utid, mapping, row_number() OVER (PARTITION BY utid ORDER BY mapping) - 1 AS idx
FROM _firefox_stacks
WHERE mapping IS NOT NULL
GROUP BY utid, mapping
ORDER BY utid, idx;

CREATE PERFETTO TABLE _firefox_funcs AS
SELECT utid, name, mapping, file, row_number() OVER (PARTITION BY utid ORDER BY name, mapping, file) - 1 AS idx
FROM _firefox_stacks
GROUP BY utid, name, mapping, file
ORDER BY utid, idx;

CREATE PERFETTO TABLE _firefox_frames AS
SELECT
  utid,
  frame_id,
  inline_depth,
  name,
  mapping,
  file,
  line,
  row_number() OVER (PARTITION BY utid ORDER BY frame_id, inline_depth) - 1 AS idx
FROM _firefox_stacks
GROUP BY utid, frame_id, inline_depth
ORDER BY utid, idx;

-- Position of a text.
CREATE PERFETTO MACRO _firefox_string(
  -- The thread.
  utid Expr,
  -- The text.
  text Expr
)
RETURNS Expr AS (SELECT x.idx FROM _firefox_strings AS x WHERE x.utid = $utid AND x.text = $text);

-- Samples with the place where their stack ends, by call site: (utid, ts, sample_id, callsite_id, stack).
CREATE PERFETTO TABLE _export_to_firefox_table AS
SELECT s.utid, s.ts, s.id AS sample_id, s.callsite_id, e.idx AS stack
FROM cpu_profiling_samples AS s
JOIN _firefox_ends AS e ON e.utid = s.utid AND e.callsite_id = s.callsite_id
ORDER BY s.callsite_id;

CREATE PERFETTO FUNCTION _export_firefox_samples_table(
  -- The thread.
  utid JOINID(thread.id)
)
RETURNS STRING AS
SELECT
  json_object(
    'stack', json_group_array(stack),
    'time', json_group_array(time),
    'weight', NULL,
    'weightType', 'samples',
    'length', count()
  )
FROM (
  SELECT s.stack, _firefox_ms!(s.ts) AS time
  FROM _export_to_firefox_table AS s
  WHERE s.utid = $utid
  ORDER BY s.ts, s.sample_id
);

CREATE PERFETTO FUNCTION _export_firefox_stack_table(
  -- The thread.
  utid JOINID(thread.id)
)
RETURNS STRING AS
SELECT
  json_object(
    'frame', json_group_array(frame),
    'prefix', json_group_array(prefix),
    'category', json_group_array(0),
    'subcategory', json_group_array(0),
    'length', count()
  )
FROM (
  SELECT
    f.idx AS frame,
    iif(
      s.inline_depth > 0,
      s.idx - 1,
      (SELECT e.idx FROM _firefox_ends AS e WHERE e.utid = s.utid AND e.callsite_id = s.parent_id)
    ) AS prefix
  FROM _firefox_stacks AS s
  JOIN _firefox_frames AS f ON f.utid = s.utid AND f.frame_id = s.frame_id AND f.inline_depth = s.inline_depth
  WHERE s.utid = $utid
  ORDER BY s.idx
);

CREATE PERFETTO FUNCTION _export_firefox_frame_table(
  -- The thread.
  utid JOINID(thread.id)
)
RETURNS STRING AS
SELECT
  json_object(
    'address', json_group_array(-1),
    'inlineDepth', json_group_array(inline_depth),
    'category', json_group_array(0),
    'subcategory', json_group_array(0),
    'func', json_group_array(func),
    'nativeSymbol', json_group_array(NULL),
    'innerWindowID', json_group_array(NULL),
    'implementation', json_group_array(NULL),
    'line', json_group_array(line),
    'column', json_group_array(NULL),
    'length', count()
  )
FROM (
  SELECT f.inline_depth, f.line, u.idx AS func
  FROM _firefox_frames AS f
  JOIN _firefox_funcs AS u
    ON u.utid = f.utid AND u.name = f.name AND u.mapping IS f.mapping AND u.file IS f.file
  WHERE f.utid = $utid
  ORDER BY f.idx
);

CREATE PERFETTO FUNCTION _export_firefox_func_table(
  -- The thread.
  utid JOINID(thread.id)
)
RETURNS STRING AS
SELECT
  json_object(
    'name', json_group_array(name),
    'isJS', json_group_array(json('false')),
    'relevantForJS', json_group_array(json('false')),
    'resource', json_group_array(resource),
    'fileName', json_group_array(file),
    'lineNumber', json_group_array(NULL),
    'columnNumber', json_group_array(NULL),
    'length', count()
  )
FROM (
  SELECT
    _firefox_string!($utid, f.name) AS name,
    _firefox_string!($utid, f.file) AS file,
    coalesce((SELECT r.idx FROM _firefox_resources AS r WHERE r.utid = $utid AND r.mapping = f.mapping), -1) AS resource
  FROM _firefox_funcs AS f
  WHERE f.utid = $utid
  ORDER BY f.idx
);

-- A resource of type 1 is a library.
CREATE PERFETTO FUNCTION _firefox_resource_table(
  -- The thread.
  utid JOINID(thread.id)
)
RETURNS STRING AS
SELECT
  json_object(
    'lib', json_group_array(NULL),
    'name', json_group_array(name),
    'host', json_group_array(NULL),
    'type', json_group_array(1),
    'length', count()
  )
FROM (
  SELECT _firefox_string!($utid, r.mapping) AS name FROM _firefox_resources AS r WHERE r.utid = $utid ORDER BY r.idx
);

-- A marker of phase 0 is a moment, of phase 1 a span, of phase 2 the start of one whose end nobody saw.
CREATE PERFETTO FUNCTION _firefox_marker_table(
  -- The thread.
  utid JOINID(thread.id)
)
RETURNS STRING AS
SELECT
  json_object(
    'name', json_group_array(name),
    'startTime', json_group_array(start_time),
    'endTime', json_group_array(end_time),
    'phase', json_group_array(phase),
    'category', json_group_array(0),
    'data', json_group_array(json(data)),
    'length', count()
  )
FROM (
  SELECT
    _firefox_string!($utid, m.name) AS name,
    _firefox_ms!(m.ts) AS start_time,
    iif(m.dur > 0, _firefox_ms!(m.ts + m.dur), NULL) AS end_time,
    CASE WHEN m.dur > 0 THEN 1 WHEN m.dur = 0 THEN 0 ELSE 2 END AS phase,
    json_object('type', 'slice', 'category', m.category, 'args', __intrinsic_arg_set_to_json(m.arg_set_id)) AS data
  FROM _firefox_markers AS m
  WHERE m.utid = $utid
  ORDER BY m.ts
);

CREATE PERFETTO FUNCTION _export_firefox_string_array(
  -- The thread.
  utid JOINID(thread.id)
)
RETURNS STRING AS
SELECT json_group_array(text)
FROM (SELECT text FROM _firefox_strings WHERE utid = $utid ORDER BY idx);

-- Tables without a row: symbols of native code, …
CREATE PERFETTO FUNCTION _export_firefox_native_symbol_table()
RETURNS STRING AS
SELECT
  json_object(
    'libIndex', json_array(), 'address', json_array(), 'name', json_array(), 'functionSize', json_array(), 'length', 0
  );

-- … resources, …
CREATE PERFETTO FUNCTION _export_firefox_resource_table()
RETURNS STRING AS
SELECT json_object('lib', json_array(), 'name', json_array(), 'host', json_array(), 'type', json_array(), 'length', 0);

-- … and markers, for threads that have none.
CREATE PERFETTO FUNCTION _export_firefox_thread_markers()
RETURNS STRING AS
SELECT
  json_object(
    'name', json_array(), 'startTime', json_array(), 'endTime', json_array(), 'phase', json_array(), 'category', json_array(),
    'data', json_array(), 'length', 0
  );

-- Numbers of processes as texts; those of two machines are told apart.
CREATE PERFETTO FUNCTION _firefox_pid(
  -- The number.
  pid LONG,
  -- The machine.
  machine_id JOINID(machine.id)
)
RETURNS STRING AS
SELECT coalesce($pid, 0) || iif($machine_id > 0, '@' || $machine_id, '');

CREATE PERFETTO FUNCTION _export_firefox_thread(
  -- The thread.
  utid JOINID(thread.id)
)
RETURNS STRING AS
SELECT
  json_object(
    'processType', 'default',
    'processStartupTime', coalesce(_firefox_ms!(p.start_ts), 0),
    'processShutdownTime', _firefox_ms!(p.end_ts),
    'registerTime', coalesce(_firefox_ms!(t.start_ts), 0),
    'unregisterTime', _firefox_ms!(t.end_ts),
    'pausedRanges', json_array(),
    'showMarkersInTimeline', json('true'),
    'name', coalesce(t.name, 'tid ' || t.tid),
    'processName', coalesce(p.name, ''),
    'isMainThread', json(iif(t.is_main_thread, 'true', 'false')),
    'pid', _firefox_pid(coalesce(p.pid, t.tid), t.machine_id),
    'tid', t.tid,
    'samples', json(_export_firefox_samples_table(t.utid)),
    'markers', json(
      iif(
        EXISTS (SELECT 1 FROM _firefox_markers AS m WHERE m.utid = t.utid),
        _firefox_marker_table(t.utid),
        _export_firefox_thread_markers()
      )
    ),
    'stackTable', json(_export_firefox_stack_table(t.utid)),
    'frameTable', json(_export_firefox_frame_table(t.utid)),
    'funcTable', json(_export_firefox_func_table(t.utid)),
    'resourceTable', json(
      iif(
        EXISTS (SELECT 1 FROM _firefox_resources AS r WHERE r.utid = t.utid),
        _firefox_resource_table(t.utid),
        _export_firefox_resource_table()
      )
    ),
    'nativeSymbols', json(_export_firefox_native_symbol_table()),
    'stringArray', json(_export_firefox_string_array(t.utid))
  )
FROM thread AS t
LEFT JOIN process AS p USING (upid)
WHERE t.utid = $utid;

-- What the profile tells about itself. Times are counted from the trace's start, which is given in ms since 1970 where the
-- trace knows it.
CREATE PERFETTO FUNCTION _export_firefox_meta()
RETURNS STRING AS
SELECT
  json_object(
    'interval', 1,
    'startTime', coalesce(to_realtime(trace_start()) / 1e6, 0),
    'processType', 0,
    'product', coalesce(extract_metadata('system_name'), 'trace'),
    'platform', extract_metadata('system_name'),
    'oscpu', extract_metadata('system_release'),
    'importedFrom', 'Meridian',
    'stackwalk', 1,
    'version', 29,
    'preprocessedProfileVersion', 48,
    'symbolicated', json('true'),
    'usesOnlyOneStackType', json('true'),
    'doesNotUseFrameImplementation', json('true'),
    'sourceCodeIsNotOnSearchfox', json('true'),
    'categories', json_array(
      json_object('name', 'Other', 'color', 'grey', 'subcategories', json_array('Other'))
    ),
    'sampleUnits', json_object('time', 'ms', 'eventDelay', 'ms', 'threadCPUDelta', 'µs'),
    'markerSchema', json_array(
      json_object(
        'name', 'slice',
        'display', json_array('marker-chart', 'marker-table', 'timeline-overview'),
        'data', json_array(
          json_object('key', 'category', 'label', 'Category', 'format', 'string', 'searchable', json('true')),
          json_object('key', 'args', 'label', 'Args', 'format', 'string', 'searchable', json('true'))
        )
      )
    )
  );

-- Threads that have samples or slices, by process.
CREATE PERFETTO FUNCTION _export_firefox_threads()
RETURNS STRING AS
SELECT json_group_array(json(_export_firefox_thread(utid)))
FROM (
  SELECT t.utid
  FROM thread AS t
  LEFT JOIN process AS p USING (upid)
  WHERE
    t.utid IN (SELECT utid FROM _firefox_callsites UNION SELECT utid FROM _firefox_markers)
  ORDER BY t.machine_id, p.pid, t.is_main_thread DESC, t.tid
);

-- The profile.
CREATE PERFETTO FUNCTION export_to_firefox_profile()
-- JSON.
RETURNS STRING AS
SELECT
  json_object(
    'meta', json(_export_firefox_meta()),
    'libs', json_array(),
    'pages', json_array(),
    'threads', json(_export_firefox_threads())
  );
