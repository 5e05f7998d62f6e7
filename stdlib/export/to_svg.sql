-- Timelines as SVG pictures: slices, states of threads and counters, one below the other, to scale.
--
-- export_to_svg() draws the threads of the whole trace or of a part. The macros draw any rows: a picture for each value of
-- one column, in it a track for each value of another, ordered by a third. Links and explanations are in the picture.

-- A text where XML wants one, also within quotes.
CREATE PERFETTO FUNCTION _escape_xml(
  -- The text.
  text STRING
)
RETURNS STRING AS
SELECT replace(replace(replace(replace($text, '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;');

-- A time as people write it: "1.5ms".
CREATE PERFETTO FUNCTION _format_duration(
  -- Duration in nanoseconds.
  dur DURATION
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $dur >= 1000000000 THEN printf('%.1fs', $dur / 1e9)
    WHEN $dur >= 1000000 THEN printf('%.1fms', $dur / 1e6)
    WHEN $dur >= 1000 THEN printf('%.1fμs', $dur / 1e3)
    ELSE $dur || 'ns'
  END;

-- A number as people write it: "2.50M".
CREATE PERFETTO FUNCTION _format_large_number(
  -- The number.
  value DOUBLE
)
RETURNS STRING AS
SELECT
  CASE
    WHEN abs($value) >= 1e12 THEN printf('%.2fT', $value / 1e12)
    WHEN abs($value) >= 1e9 THEN printf('%.2fG', $value / 1e9)
    WHEN abs($value) >= 1e6 THEN printf('%.2fM', $value / 1e6)
    WHEN abs($value) >= 1e3 THEN printf('%.2fK', $value / 1e3)
    ELSE printf('%.2f', $value)
  END;

-- Height of a row of slices in a picture of a width, in pixels.
CREATE PERFETTO FUNCTION _row_height(
  -- Width of the picture.
  max_width LONG
)
RETURNS LONG AS
SELECT max(2, CAST($max_width * 0.008 AS INT));

-- Height of a counter's curve.
CREATE PERFETTO FUNCTION _counter_height(
  -- Width of the picture.
  max_width LONG
)
RETURNS LONG AS
SELECT CAST(_row_height($max_width) * 1.5 AS INT);

-- One of twelve light colours; the same name has the same one in all pictures.
CREATE PERFETTO FUNCTION _slice_color(
  -- Name of the slice.
  name STRING
)
RETURNS STRING AS
SELECT printf('hsl(%d,45%%,78%%)', (hash(coalesce($name, '')) & 0x7fffffffffffffff) % 12 * 30);

-- The colour of a thread's state: running green, waiting for a CPU light green, for a disk orange, for something else in the
-- kernel red, sleeping grey.
CREATE PERFETTO FUNCTION _state_color(
  -- The state, as the kernel writes it.
  state STRING,
  -- Whether it waits for input or output.
  io_wait LONG
)
RETURNS STRING AS
SELECT
  CASE
    WHEN lower($state) = 'running' THEN '#2e7d32'
    WHEN $state IN ('R', 'R+') THEN '#9ccc65'
    WHEN $io_wait THEN '#ff9800'
    WHEN $state GLOB 'D*' OR $state GLOB 'U*' THEN '#b55a55'
    WHEN $state GLOB 'Z*' OR $state GLOB 'X*' THEN '#7e57c2'
    WHEN $state GLOB 'T*' OR $state GLOB 't*' THEN '#f9731a'
    ELSE '#a5a5a5'
  END;

-- As much of a text as a width in pixels has room for.
CREATE PERFETTO FUNCTION _fit_text(
  -- The text.
  text STRING,
  -- The width.
  available_width DOUBLE
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $available_width < 12 THEN ''
    WHEN length($text) * 6.5 <= $available_width THEN $text
    WHEN $available_width < 25 THEN substr($text, 1, CAST($available_width / 6.5 AS INT))
    ELSE substr($text, 1, CAST(($available_width - 18) / 6.5 AS INT)) || '...'
  END;

-- A rectangle with an explanation that shows up under the pointer, a link (or NULL) and what stands in front of it.
CREATE PERFETTO FUNCTION _svg_rect(
  -- Left edge.
  x DOUBLE,
  -- Upper edge.
  y DOUBLE,
  -- Width in pixels.
  width DOUBLE,
  -- Height in pixels.
  height DOUBLE,
  -- Colour to fill with.
  fill STRING,
  -- The explanation.
  title STRING,
  -- The link.
  href STRING,
  -- SVG in front.
  text_content STRING
)
RETURNS STRING AS
SELECT
  coalesce('<a href="' || _escape_xml($href) || '" target="_blank">', '')
  || printf('<rect x="%g" y="%g" width="%g" height="%g" fill="%s">', $x, $y, $width, $height, $fill)
  || coalesce('<title>' || _escape_xml($title) || '</title>', '')
  || '</rect>'
  || coalesce($text_content, '')
  || iif($href IS NULL, '', '</a>');

-- A slice with its name, as far as there is room.
CREATE PERFETTO FUNCTION _slice_to_svg(
  -- Left edge.
  x_pixel DOUBLE,
  -- Upper edge.
  y_pixel DOUBLE,
  -- Width in pixels.
  width_pixel DOUBLE,
  -- Height in pixels.
  height_pixel DOUBLE,
  -- Its name.
  name STRING,
  -- How long it took.
  dur DURATION,
  -- The link.
  href STRING
)
RETURNS STRING AS
SELECT
  _svg_rect(
    $x_pixel, $y_pixel, $width_pixel, $height_pixel, _slice_color($name),
    coalesce($name, '?') || ' (' || _format_duration($dur) || ')', $href,
    iif(
      $width_pixel >= 15,
      printf(
        '<text x="%g" y="%g" text-anchor="middle" font-size="11">%s</text>',
        $x_pixel + $width_pixel / 2, $y_pixel + $height_pixel / 2, _escape_xml(_fit_text(coalesce($name, '?'), $width_pixel - 4))
      ),
      NULL
    )
  );

-- A thread's state.
CREATE PERFETTO FUNCTION _thread_state_to_svg(
  -- Left edge.
  x_pixel DOUBLE,
  -- Upper edge.
  y_pixel DOUBLE,
  -- Width in pixels.
  width_pixel DOUBLE,
  -- Height in pixels.
  height_pixel DOUBLE,
  -- The state.
  state STRING,
  -- Whether it waits for input or output.
  io_wait LONG,
  -- What in the kernel it waits in.
  blocked_function STRING,
  -- How long it lasted.
  dur DURATION,
  -- The link.
  href STRING
)
RETURNS STRING AS
SELECT
  _svg_rect(
    $x_pixel, $y_pixel, $width_pixel, $height_pixel, _state_color($state, $io_wait),
    'Thread State: ' || coalesce($state, '?') || ' (' || _format_duration($dur) || ')'
    || coalesce(', blocked by ' || $blocked_function, ''),
    $href, NULL
  );

-- A value of a counter as a bar from zero, or from the smallest value when none is below zero.
CREATE PERFETTO FUNCTION _counter_to_svg(
  -- Left edge.
  x_pixel DOUBLE,
  -- Upper edge of the curve.
  y_pixel DOUBLE,
  -- Width in pixels.
  width_pixel DOUBLE,
  -- Height of the curve.
  height_pixel DOUBLE,
  -- The value.
  value DOUBLE,
  -- The largest one.
  max_value DOUBLE,
  -- The smallest one.
  min_value DOUBLE,
  -- Name of the counter.
  name STRING,
  -- The link.
  href STRING
)
RETURNS STRING AS
WITH
  scale AS (
    SELECT
      -- where the bars stand: zero, or the end of the values that is nearer to it
      min(max(0.0, $min_value), $max_value) AS base,
      $height_pixel / iif($max_value > $min_value, $max_value - $min_value, 1.0) AS px
  )
SELECT
  _svg_rect(
    $x_pixel,
    $y_pixel + ($max_value - max($value, base)) * px,
    $width_pixel,
    abs($value - base) * px,
    iif($value >= 0, 'steelblue', 'coral'),
    coalesce($name, '?') || ': ' || printf('%.1f', $value),
    $href,
    NULL
  )
FROM scale;

-- What looks alike in all pictures.
CREATE PERFETTO FUNCTION _svg_styles()
RETURNS STRING AS
SELECT '<style>rect{cursor:pointer} text{font-family:sans-serif;fill:#333;pointer-events:none;dominant-baseline:central}</style>';

-- Pictures of slices, states and counters: (svg_group_key, svg). Rows that are narrower than two pixels are left out, those
-- of counters when they are narrower than one.
CREATE PERFETTO MACRO _svg_timeline_with_counters(
  -- The three columns below, and ts, dur, depth, name, href.
  slice_table TableOrSubquery,
  -- The three columns below, and ts, dur, state, io_wait, blocked_function, href.
  thread_state_table TableOrSubquery,
  -- The three columns below, and ts, dur, name, value, href.
  counter_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it; also the track's label.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- Width of the timeline in pixels.
  max_width Expr,
  -- Room in front of it.
  left_margin Expr,
  -- Whether all counters of a picture have the same scale.
  use_shared_counter_scale Expr
)
RETURNS TableOrSubquery AS
(
  WITH
    _svg_rows AS MATERIALIZED (
      SELECT
        $svg_group_key_col AS grp, $track_group_key_col AS track, $track_group_order_col AS ord, 1 AS kind,
        ts, dur, 0 AS depth, NULL AS name, href, state, io_wait, blocked_function, NULL AS value
      FROM $thread_state_table
      WHERE dur > 0
      UNION ALL
      SELECT
        $svg_group_key_col, $track_group_key_col, $track_group_order_col, 2,
        ts, dur, coalesce(depth, 0), name, href, NULL, NULL, NULL, NULL
      FROM $slice_table
      WHERE dur > 0
      UNION ALL
      SELECT
        $svg_group_key_col, $track_group_key_col, $track_group_order_col, 3,
        ts, dur, 0, name, href, NULL, NULL, NULL, CAST(value AS REAL)
      FROM $counter_table
      WHERE dur > 0
    ),
    _svg_scales AS MATERIALIZED (
      SELECT
        grp, min(ts) AS ts_min, CAST($max_width AS REAL) / (max(ts + dur) - min(ts)) AS px, min(value) AS value_min,
        max(value) AS value_max
      FROM _svg_rows
      GROUP BY grp
    ),
    -- a band holds the rows of one kind of a track; the first band of a track has its label above it
    _svg_bands AS MATERIALIZED (
      SELECT
        grp,
        track,
        kind,
        min(ord) AS ord,
        iif(row_number() OVER (PARTITION BY grp, track ORDER BY kind) = 1, 20, 0) AS label_height,
        CASE kind
          WHEN 1 THEN max(1, _row_height($max_width) / 2)
          WHEN 2 THEN (max(depth) + 1) * _row_height($max_width) + 5
          ELSE _counter_height($max_width) + 5
        END AS height,
        min(value) AS value_min,
        max(value) AS value_max
      FROM _svg_rows
      GROUP BY grp, track, kind
    ),
    _svg_placed AS MATERIALIZED (
      SELECT
        b.*,
        sum(label_height + height) OVER (PARTITION BY grp ORDER BY ord, track, kind ROWS UNBOUNDED PRECEDING) - height AS y
      FROM _svg_bands AS b
    ),
    _svg_pieces AS (
      SELECT
        r.grp,
        b.y,
        1 AS is_row,
        r.ts,
        r.depth,
        CASE r.kind
          WHEN 1 THEN
            _thread_state_to_svg(
              (r.ts - s.ts_min) * s.px, CAST(b.y AS REAL), r.dur * s.px, CAST(b.height AS REAL), r.state, r.io_wait,
              r.blocked_function, r.dur, r.href
            )
          WHEN 2 THEN
            _slice_to_svg(
              (r.ts - s.ts_min) * s.px, CAST(b.y + r.depth * _row_height($max_width) AS REAL), r.dur * s.px,
              CAST(_row_height($max_width) AS REAL), r.name, r.dur, r.href
            )
          ELSE
            _counter_to_svg(
              (r.ts - s.ts_min) * s.px, CAST(b.y AS REAL), r.dur * s.px, CAST(_counter_height($max_width) AS REAL), r.value,
              iif($use_shared_counter_scale, s.value_max, b.value_max),
              iif($use_shared_counter_scale, s.value_min, b.value_min), r.name, r.href
            )
        END AS svg
      FROM _svg_rows AS r
      JOIN _svg_scales AS s ON s.grp IS r.grp
      JOIN _svg_placed AS b ON b.grp IS r.grp AND b.track IS r.track AND b.kind = r.kind
      WHERE r.dur * s.px >= iif(r.kind = 3, 1, 2)
      UNION ALL
      SELECT
        grp,
        y,
        0,
        0,
        0,
        printf('<text x="5" y="%d" font-size="11">%s</text>', y - 10, _escape_xml(CAST(coalesce(track, '') AS TEXT)))
        || iif(
          kind = 3,
          printf('<text x="200" y="%d" font-size="9">%s .. %s</text>', y - 10, _format_large_number(value_min), _format_large_number(value_max)),
          ''
        )
      FROM _svg_placed
      WHERE label_height > 0
    )
  SELECT
    p.grp AS svg_group_key,
    printf(
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">%s<g transform="translate(%d,5)">',
      $max_width + $left_margin + 10,
      (SELECT max(b.y + b.height) FROM _svg_placed AS b WHERE b.grp IS p.grp) + 10,
      _svg_styles(),
      $left_margin
    ) || group_concat(p.svg, '') || '</g></svg>' AS svg
  FROM (SELECT * FROM _svg_pieces ORDER BY grp, y, is_row, ts, depth) AS p
  GROUP BY p.grp
);

-- The same without counters.
CREATE PERFETTO MACRO _svg_timeline(
  -- As above.
  slice_table TableOrSubquery,
  -- As above.
  thread_state_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- Width of the timeline in pixels.
  max_width Expr,
  -- Room in front of it.
  left_margin Expr
)
RETURNS TableOrSubquery AS
(
  SELECT *
  FROM _svg_timeline_with_counters!(
    $slice_table,
    $thread_state_table,
    (
      SELECT
        NULL AS $svg_group_key_col, NULL AS $track_group_key_col, NULL AS $track_group_order_col, 0 AS ts, 0 AS dur,
        NULL AS name, NULL AS value, NULL AS href
      WHERE 0
    ),
    $svg_group_key_col,
    $track_group_key_col,
    $track_group_order_col,
    $max_width,
    $left_margin,
    0
  )
);

-- Spans as far as they lie in an interval: the rows with ts and dur cut.
CREATE PERFETTO MACRO _svg_cut(
  -- Spans: ts, dur; those without an end last to the trace's.
  spans TableOrSubquery,
  -- Start of the interval.
  ts Expr,
  -- Its end.
  ts_end Expr
)
RETURNS TableOrSubquery AS
(
  SELECT
    *, max(span_ts, $ts) AS ts, min(span_ts + iif(span_dur < 0, trace_end() - span_ts, span_dur), $ts_end) - max(span_ts, $ts) AS dur
  FROM $spans
  WHERE span_ts < $ts_end AND (span_dur < 0 OR span_ts + span_dur > $ts)
);

-- A picture of all threads that have slices, with what they did and how they were scheduled.
CREATE PERFETTO FUNCTION export_to_svg(
  -- Start of the part to draw; NULL: of the trace.
  ts TIMESTAMP,
  -- Its length; NULL: to the trace's end.
  dur DURATION
)
-- SVG; NULL when there is nothing to draw.
RETURNS STRING AS
WITH
  part AS MATERIALIZED (
    SELECT
      coalesce($ts, trace_start()) AS ts,
      coalesce($ts, trace_start()) + coalesce($dur, trace_end() - coalesce($ts, trace_start())) AS ts_end
  ),
  drawn AS MATERIALIZED (
    SELECT
      t.utid,
      k.id AS track_id,
      coalesce(p.name || ' / ', '') || coalesce(t.name, '') || ' ' || t.tid
      || iif(t.machine_id > 0, ' on machine ' || t.machine_id, '') AS track,
      row_number() OVER (ORDER BY t.machine_id, p.pid, t.is_main_thread DESC, t.tid) AS ord
    FROM thread_track AS k
    JOIN thread AS t USING (utid)
    LEFT JOIN process AS p USING (upid)
    WHERE k.id IN (SELECT track_id FROM slice)
  )
SELECT svg
FROM _svg_timeline!(
  (
    SELECT 1 AS picture, track, ord, ts, dur, depth, name, NULL AS href
    FROM _svg_cut!(
      (
        SELECT d.track, d.ord, s.ts AS span_ts, s.dur AS span_dur, s.depth, s.name
        FROM drawn AS d
        JOIN slice AS s USING (track_id)
      ),
      (SELECT ts FROM part),
      (SELECT ts_end FROM part)
    )
  ),
  (
    SELECT 1 AS picture, track, ord, ts, dur, state, io_wait, blocked_function, NULL AS href
    FROM _svg_cut!(
      (
        SELECT d.track, d.ord, s.ts AS span_ts, s.dur AS span_dur, s.state, s.io_wait, s.blocked_function
        FROM drawn AS d
        JOIN thread_state AS s USING (utid)
      ),
      (SELECT ts FROM part),
      (SELECT ts_end FROM part)
    )
  ),
  picture,
  track,
  ord,
  1600,
  0
);
