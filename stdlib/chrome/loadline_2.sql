-- The benchmark LoadLine 2: when its pages came how far, by the marks "LoadLine2/PAGE/MARK" that they make.

INCLUDE PERFETTO MODULE slices.with_context;

-- The marks, on a thread of the renderer or a track of its process: (ts, page, mark, upid).
CREATE PERFETTO TABLE _chrome_loadline2_marks AS
SELECT
  ts,
  regexp_extract(name, '^LoadLine2/([^/]*)/') AS page,
  regexp_extract(name, '^LoadLine2/[^/]*/([^/]*)') AS mark,
  upid
FROM thread_or_process_slice
WHERE category = 'blink.user_timing' AND name GLOB 'LoadLine2/*/*';

-- When frames of a process were on the screen: (upid, commit_ts, ts), by the reports that tell that all of a frame was shown.
CREATE PERFETTO TABLE _chrome_presented_commits AS
SELECT t.upid, s.ts AS commit_ts, r.ts + r.dur AS ts
FROM slice AS r
JOIN process_track AS t ON t.id = r.track_id
JOIN slice AS s ON s.parent_id = r.id AND s.name = 'Commit'
WHERE
  r.name = 'PipelineReporter'
  AND coalesce(
    extract_arg(r.arg_set_id, 'frame_reporter.state'), extract_arg(r.arg_set_id, 'chrome_frame_reporter.state')
  ) = 'STATE_PRESENTED_ALL';

-- When the first frame that a process of a number committed behind a moment was on the screen; NULL: none was.
CREATE PERFETTO FUNCTION _chrome_get_next_presentation_time_by_pid(
  ts TIMESTAMP,
  -- The kernel's number of the renderer.
  pid LONG
)
RETURNS TIMESTAMP AS
SELECT min(c.ts)
FROM _chrome_presented_commits AS c
JOIN process AS p USING (upid)
WHERE p.pid = $pid AND c.commit_ts > $ts;

-- The marks with the number of the process that made them.
CREATE PERFETTO VIEW _chrome_loadline2_marks_with_pid(
  -- When it was made.
  ts TIMESTAMP,
  -- The page.
  page STRING,
  -- The mark.
  mark STRING,
  -- The kernel's number of the renderer.
  pid LONG
) AS
SELECT m.ts, m.page, m.mark, p.pid
FROM _chrome_loadline2_marks AS m
LEFT JOIN process AS p USING (upid);

-- One table for each stage, a row a page: when the benchmark began with the page …
CREATE PERFETTO TABLE _chrome_loadline2_story_start(
  page STRING,
  story_start TIMESTAMP
) AS
SELECT page, max(ts) AS story_start FROM _chrome_loadline2_marks WHERE mark = 'start' GROUP BY page;

-- … and was done with it …
CREATE PERFETTO TABLE _chrome_loadline2_story_finish(
  page STRING,
  story_finish TIMESTAMP
) AS
SELECT page, max(ts) AS story_finish FROM _chrome_loadline2_marks WHERE mark = 'finish' GROUP BY page;

-- … which renderer it had: the one that made the last mark …
CREATE PERFETTO TABLE _chrome_loadline2_story_pid(
  page STRING,
  pid LONG
) AS
SELECT page, pid FROM _chrome_loadline2_marks_with_pid WHERE mark = 'finish' GROUP BY page HAVING ts = max(ts);

-- … its start with the renderer …
CREATE PERFETTO TABLE _chrome_loadline2_story_start_with_pid(
  page STRING,
  story_start TIMESTAMP,
  pid LONG
) AS
SELECT page, story_start, pid FROM _chrome_loadline2_story_start JOIN _chrome_loadline2_story_pid USING (page);

-- … when its first request was made …
CREATE PERFETTO TABLE _chrome_loadline2_start_request(
  page STRING,
  start_request TIMESTAMP
) AS
SELECT p.page, min(s.ts) AS start_request
FROM _chrome_loadline2_story_start AS p
JOIN slice AS s ON s.name = 'WillStartRequest' AND s.ts >= p.story_start
GROUP BY p.page;

-- … and answered …
CREATE PERFETTO TABLE _chrome_loadline2_end_request(
  page STRING,
  end_request TIMESTAMP
) AS
SELECT p.page, min(s.ts) AS end_request
FROM _chrome_loadline2_story_start AS p
JOIN slice AS s ON s.name = 'CommitSentToFirstSubresourceLoadStart' AND s.ts >= p.story_start
GROUP BY p.page;

-- … when the renderer began with the document …
CREATE PERFETTO TABLE _chrome_loadline2_renderer_ready(
  page STRING,
  renderer_ready TIMESTAMP
) AS
SELECT p.page, min(s.ts) AS renderer_ready
FROM _chrome_loadline2_story_start_with_pid AS p
JOIN process AS r USING (pid)
JOIN thread_slice AS s ON s.upid = r.upid AND s.name = 'DocumentLoader::CommitNavigation' AND s.ts >= p.story_start
GROUP BY p.page;

-- … when it marked that it looks complete …
CREATE PERFETTO TABLE _chrome_loadline2_visual_mark(
  page STRING,
  visual_mark TIMESTAMP,
  pid LONG
) AS
SELECT page, max(ts) AS visual_mark, pid
FROM _chrome_loadline2_marks_with_pid
WHERE mark = 'visual'
GROUP BY page;

-- … when it asked for the second frame behind that …
CREATE PERFETTO TABLE _chrome_loadline2_visual_raf(
  page STRING,
  visual_raf TIMESTAMP
) AS
SELECT page, max(ts) AS visual_raf FROM _chrome_loadline2_marks WHERE mark = 'visual_raf' GROUP BY page;

-- … and when the first frame behind it was on the screen.
CREATE PERFETTO TABLE _chrome_loadline2_visual_presentation(
  page STRING,
  visual_presentation TIMESTAMP
) AS
SELECT page, _chrome_get_next_presentation_time_by_pid(visual_mark, pid) AS visual_presentation
FROM _chrome_loadline2_visual_mark;

-- … when it marked that it can be used …
CREATE PERFETTO TABLE _chrome_loadline2_interactive_mark(
  page STRING,
  interactive_mark TIMESTAMP,
  pid LONG
) AS
SELECT page, max(ts) AS interactive_mark, pid
FROM _chrome_loadline2_marks_with_pid
WHERE mark = 'interactive'
GROUP BY page;

-- … when it asked for the second frame behind that …
CREATE PERFETTO TABLE _chrome_loadline2_interactive_raf(
  page STRING,
  interactive_raf TIMESTAMP
) AS
SELECT page, max(ts) AS interactive_raf FROM _chrome_loadline2_marks WHERE mark = 'interactive_raf' GROUP BY page;

-- … and when the first frame behind it was on the screen.
CREATE PERFETTO TABLE _chrome_loadline2_interactive_presentation(
  page STRING,
  interactive_presentation TIMESTAMP
) AS
SELECT page, _chrome_get_next_presentation_time_by_pid(interactive_mark, pid) AS interactive_presentation
FROM _chrome_loadline2_interactive_mark;

-- Pages, each with the moments it came to.
CREATE PERFETTO TABLE chrome_loadline2_stages(
  -- The page.
  page STRING,
  -- The benchmark began with the page.
  story_start TIMESTAMP,
  -- The first request was made.
  start_request TIMESTAMP,
  -- The first request was answered.
  end_request TIMESTAMP,
  -- The renderer began with the document.
  renderer_ready TIMESTAMP,
  -- The page marked that it looks complete.
  visual_mark TIMESTAMP,
  -- The second frame after that was asked for.
  visual_raf TIMESTAMP,
  -- The first frame after that mark was on the screen.
  visual_presentation TIMESTAMP,
  -- The page marked that it can be used.
  interactive_mark TIMESTAMP,
  -- The second frame after that was asked for.
  interactive_raf TIMESTAMP,
  -- The first frame after that mark was on the screen.
  interactive_presentation TIMESTAMP,
  -- The benchmark was done with the page.
  story_finish TIMESTAMP
) AS
SELECT
  page,
  story_start,
  start_request,
  end_request,
  renderer_ready,
  visual_mark,
  visual_raf,
  visual_presentation,
  interactive_mark,
  interactive_raf,
  interactive_presentation,
  story_finish
FROM _chrome_loadline2_story_start
JOIN _chrome_loadline2_story_finish USING (page)
LEFT JOIN _chrome_loadline2_start_request USING (page)
LEFT JOIN _chrome_loadline2_end_request USING (page)
LEFT JOIN _chrome_loadline2_renderer_ready USING (page)
LEFT JOIN _chrome_loadline2_visual_mark AS v USING (page)
LEFT JOIN _chrome_loadline2_visual_raf USING (page)
LEFT JOIN _chrome_loadline2_visual_presentation USING (page)
LEFT JOIN _chrome_loadline2_interactive_mark AS i USING (page)
LEFT JOIN _chrome_loadline2_interactive_raf USING (page)
LEFT JOIN _chrome_loadline2_interactive_presentation USING (page)
ORDER BY story_start;
