-- Pages that Chrome loaded, and what of them was there when.

-- The slices that Chrome's metrics of page loads write, with navigation and process.
CREATE PERFETTO TABLE _chrome_page_load_marks AS
SELECT
  s.id,
  s.name,
  s.ts,
  s.dur,
  extract_arg(s.arg_set_id, 'page_load.navigation_id') AS navigation_id,
  extract_arg(s.arg_set_id, 'page_load.url') AS url,
  t.upid
FROM slice AS s
JOIN process_track AS t ON t.id = s.track_id
WHERE s.name GLOB 'PageLoadMetrics.*';

-- The spans of one of Chrome's metrics of page loads, by its name.
CREATE PERFETTO FUNCTION _page_load_metrics(
  event_name STRING
)
RETURNS TABLE(
  -- When the navigation began.
  ts TIMESTAMP,
  -- From there to the event.
  dur DURATION,
  -- Chrome's number of the navigation.
  navigation_id LONG,
  -- The browser's process: row of process.
  browser_upid LONG
) AS
SELECT ts, dur, navigation_id, upid AS browser_upid
FROM _chrome_page_load_marks
WHERE name = $event_name;

-- When a mark of a load ended.
CREATE PERFETTO FUNCTION _chrome_page_load_end(
  navigation_id LONG,
  upid LONG,
  name STRING
)
RETURNS LONG AS
SELECT max(ts + dur)
FROM _chrome_page_load_marks
WHERE navigation_id = $navigation_id AND upid = $upid AND name = $name;

-- The first things painted: the loads that chrome_page_loads has.
CREATE PERFETTO VIEW _fcp_metrics AS
SELECT navigation_id, upid AS browser_upid, ts, dur, url
FROM _chrome_page_load_marks
WHERE name = 'PageLoadMetrics.NavigationToFirstContentfulPaint' AND dur >= 0;

-- Loads that painted something. The last report of the largest thing painted counts.
CREATE PERFETTO TABLE chrome_page_loads(
  -- Number of the page load.
  id LONG,
  -- Chrome's number of the navigation.
  navigation_id LONG,
  -- When the navigation began.
  navigation_start_ts TIMESTAMP,
  -- From there to the first content, in nanoseconds.
  fcp LONG,
  -- When the first content was painted.
  fcp_ts TIMESTAMP,
  -- From there to the largest content, in nanoseconds.
  lcp LONG,
  -- When the largest content was painted.
  lcp_ts TIMESTAMP,
  -- When the document was read.
  dom_content_loaded_event_ts TIMESTAMP,
  -- When the page was loaded.
  load_event_ts TIMESTAMP,
  -- When the page itself said that it is loaded.
  mark_fully_loaded_ts TIMESTAMP,
  -- When the page itself said that it is visible.
  mark_fully_visible_ts TIMESTAMP,
  -- When the page itself said that it can be used.
  mark_interactive_ts TIMESTAMP,
  -- URL of the page or script.
  url STRING,
  -- The browser's process: row of process.
  browser_upid LONG
) AS
WITH
  loads AS (
    SELECT navigation_id, browser_upid AS upid, ts, dur, url FROM _fcp_metrics
  ),
  ends AS (
    SELECT
      *,
      _chrome_page_load_end(navigation_id, upid, 'PageLoadMetrics.NavigationToLargestContentfulPaint') AS lcp_ts
    FROM loads
  )
SELECT
  row_number() OVER (ORDER BY ts) AS id,
  navigation_id,
  ts AS navigation_start_ts,
  dur AS fcp,
  ts + dur AS fcp_ts,
  lcp_ts - ts AS lcp,
  lcp_ts,
  _chrome_page_load_end(navigation_id, upid, 'PageLoadMetrics.NavigationToDOMContentLoadedEventFired')
    AS dom_content_loaded_event_ts,
  _chrome_page_load_end(navigation_id, upid, 'PageLoadMetrics.NavigationToMainFrameOnLoad') AS load_event_ts,
  _chrome_page_load_end(navigation_id, upid, 'PageLoadMetrics.UserTimingMarkFullyLoaded') AS mark_fully_loaded_ts,
  _chrome_page_load_end(navigation_id, upid, 'PageLoadMetrics.UserTimingMarkFullyVisible') AS mark_fully_visible_ts,
  _chrome_page_load_end(navigation_id, upid, 'PageLoadMetrics.UserTimingMarkInteractive') AS mark_interactive_ts,
  url,
  upid AS browser_upid
FROM ends;
