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
WITH
  pages AS (
    SELECT
      page,
      max(iif(mark = 'start', ts, NULL)) AS story_start,
      max(iif(mark = 'visual', ts, NULL)) AS visual_mark,
      max(iif(mark = 'visual_raf', ts, NULL)) AS visual_raf,
      max(iif(mark = 'interactive', ts, NULL)) AS interactive_mark,
      max(iif(mark = 'interactive_raf', ts, NULL)) AS interactive_raf,
      max(iif(mark = 'finish', ts, NULL)) AS story_finish,
      max(iif(mark = 'finish', upid, NULL)) AS upid
    FROM _chrome_loadline2_marks
    GROUP BY page
    HAVING story_start IS NOT NULL AND story_finish IS NOT NULL
  )
SELECT
  p.page,
  p.story_start,
  (SELECT min(s.ts) FROM slice AS s WHERE s.name = 'WillStartRequest' AND s.ts >= p.story_start) AS start_request,
  (SELECT min(s.ts) FROM slice AS s WHERE s.name = 'CommitSentToFirstSubresourceLoadStart' AND s.ts >= p.story_start)
    AS end_request,
  (
    SELECT min(s.ts)
    FROM thread_slice AS s
    WHERE s.name = 'DocumentLoader::CommitNavigation' AND s.upid = p.upid AND s.ts >= p.story_start
  ) AS renderer_ready,
  p.visual_mark,
  p.visual_raf,
  (SELECT min(c.ts) FROM _chrome_presented_commits AS c WHERE c.upid = p.upid AND c.commit_ts > p.visual_mark)
    AS visual_presentation,
  p.interactive_mark,
  p.interactive_raf,
  (SELECT min(c.ts) FROM _chrome_presented_commits AS c WHERE c.upid = p.upid AND c.commit_ts > p.interactive_mark)
    AS interactive_presentation,
  p.story_finish
FROM pages AS p
ORDER BY p.story_start;
