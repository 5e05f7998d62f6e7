-- Where spans of several tables overlap.
--
-- Spans must not be unfinished (dur = -1). Tables may hold spans that overlap each other.

CREATE PERFETTO MACRO __first_arg(x Expr, y Expr)
RETURNS Expr AS $x;

CREATE PERFETTO MACRO _ii_df_agg(x ColumnName, y ColumnName)
RETURNS _ProjectionFragment AS __intrinsic_stringify!($x), input.$y;

CREATE PERFETTO MACRO _ii_df_bind(x Expr, y Expr)
RETURNS Expr AS __intrinsic_table_ptr_bind($x, __intrinsic_stringify!($y));

CREATE PERFETTO MACRO _ii_df_select(x ColumnName, y Expr)
RETURNS _ProjectionFragment AS $x AS $y;

-- One table as a pointer value, apart by its partition columns.
CREATE PERFETTO MACRO _interval_agg(
  tab TableOrSubquery,
  agg_columns ColumnNameList
)
RETURNS TableOrSubquery AS
(
  SELECT __intrinsic_interval_tree_intervals_agg(
    input.id,
    input.ts,
    input.dur
    __intrinsic_token_apply_prefix!(_ii_df_agg, $agg_columns, $agg_columns)
  )
  FROM (SELECT * FROM $tab ORDER BY ts) AS input
);

-- The same for a table whose columns have other names.
CREATE PERFETTO MACRO _interval_agg_with_col_names(
  tab TableOrSubquery,
  agg_columns ColumnNameList,
  id_col ColumnName,
  ts_col ColumnName,
  dur_col ColumnName
)
RETURNS TableOrSubquery AS
(
  SELECT __intrinsic_interval_tree_intervals_agg(
    input.$id_col,
    input.$ts_col,
    input.$dur_col
    __intrinsic_token_apply_prefix!(_ii_df_agg, $agg_columns, $agg_columns)
  )
  FROM (SELECT * FROM $tab ORDER BY $ts_col) AS input
);

-- Intersects all tables: (ts, dur, id_0, id_1, …, the partition columns). Each table has id, ts, dur and the partition
-- columns; only spans of equal partition values meet.
CREATE PERFETTO MACRO _interval_intersect(
  -- Tables, in parentheses.
  tabs _TableNameList,
  -- Partition columns, in parentheses; may be empty.
  agg_columns ColumnNameList
)
RETURNS TableOrSubquery AS
(
  SELECT
    c0 AS ts,
    c1 AS dur,
    __intrinsic_token_apply!(
      __first_arg,
      (
        c2 AS id_0, c3 AS id_1, c4 AS id_2, c5 AS id_3, c6 AS id_4, c7 AS id_5, c8 AS id_6, c9 AS id_7,
        c10 AS id_8, c11 AS id_9, c12 AS id_10, c13 AS id_11, c14 AS id_12, c15 AS id_13, c16 AS id_14
      ),
      $tabs
    )
    __intrinsic_token_apply_prefix!(_ii_df_select, (c17, c18, c19, c20), $agg_columns)
  FROM __intrinsic_table_ptr(
    __intrinsic_interval_intersect(
      __intrinsic_token_apply!(
        _interval_agg,
        $tabs,
        (
          $agg_columns, $agg_columns, $agg_columns, $agg_columns, $agg_columns,
          $agg_columns, $agg_columns, $agg_columns, $agg_columns, $agg_columns,
          $agg_columns, $agg_columns, $agg_columns, $agg_columns, $agg_columns
        )
      ),
      __intrinsic_stringify!($agg_columns)
    )
  )
  WHERE
    __intrinsic_table_ptr_bind(c0, 'ts')
    AND __intrinsic_table_ptr_bind(c1, 'dur')
    AND __intrinsic_token_apply_and!(
      __first_arg,
      (
        __intrinsic_table_ptr_bind(c2, 'id_0'), __intrinsic_table_ptr_bind(c3, 'id_1'),
        __intrinsic_table_ptr_bind(c4, 'id_2'), __intrinsic_table_ptr_bind(c5, 'id_3'),
        __intrinsic_table_ptr_bind(c6, 'id_4'), __intrinsic_table_ptr_bind(c7, 'id_5'),
        __intrinsic_table_ptr_bind(c8, 'id_6'), __intrinsic_table_ptr_bind(c9, 'id_7'),
        __intrinsic_table_ptr_bind(c10, 'id_8'), __intrinsic_table_ptr_bind(c11, 'id_9'),
        __intrinsic_table_ptr_bind(c12, 'id_10'), __intrinsic_table_ptr_bind(c13, 'id_11'),
        __intrinsic_table_ptr_bind(c14, 'id_12'), __intrinsic_table_ptr_bind(c15, 'id_13'),
        __intrinsic_table_ptr_bind(c16, 'id_14')
      ),
      $tabs
    )
    __intrinsic_token_apply_and_prefix!(_ii_df_bind, (c17, c18, c19, c20), $agg_columns)
);

-- A table with its columns renamed to id, ts, dur.
CREATE PERFETTO MACRO _interval_rename_cols(
  tab TableOrSubquery,
  agg_columns ColumnNameList,
  id_col ColumnName,
  ts_col ColumnName,
  dur_col ColumnName
)
RETURNS TableOrSubquery AS
(
  SELECT
    $id_col AS id,
    $ts_col AS ts,
    $dur_col AS dur
    __intrinsic_token_apply_prefix!(__first_arg, $agg_columns, $agg_columns)
  FROM $tab
);

-- The part of each span that lies in [ts, ts + dur): (id, ts, dur).
CREATE PERFETTO MACRO _interval_intersect_single(
  -- Start of the window.
  ts Expr,
  -- Its length.
  dur Expr,
  -- Spans: id, ts, dur.
  t TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    id,
    max(ts, $ts) AS ts,
    min(ts + dur, $ts + $dur) - max(ts, $ts) AS dur
  FROM $t
  WHERE ts < $ts + $dur AND (ts + dur > $ts OR (dur = 0 AND ts >= $ts))
);

-- Intersects two tables whose columns have names of their own: (ts, dur, id_0, id_1, partition columns).
CREATE PERFETTO MACRO _interval_intersect_with_col_names(
  tab1 TableOrSubquery,
  id_col1 ColumnName,
  ts_col1 ColumnName,
  dur_col1 ColumnName,
  tab2 TableOrSubquery,
  id_col2 ColumnName,
  ts_col2 ColumnName,
  dur_col2 ColumnName,
  agg_columns ColumnNameList
)
RETURNS TableOrSubquery AS
(
  SELECT
    c0 AS ts,
    c1 AS dur,
    c2 AS id_0,
    c3 AS id_1
    __intrinsic_token_apply_prefix!(_ii_df_select, (c4, c5, c6, c7), $agg_columns)
  FROM __intrinsic_table_ptr(
    __intrinsic_interval_intersect(
      _interval_agg_with_col_names!($tab1, $agg_columns, $id_col1, $ts_col1, $dur_col1),
      _interval_agg_with_col_names!($tab2, $agg_columns, $id_col2, $ts_col2, $dur_col2),
      __intrinsic_stringify!($agg_columns)
    )
  )
  WHERE
    __intrinsic_table_ptr_bind(c0, 'ts')
    AND __intrinsic_table_ptr_bind(c1, 'dur')
    AND __intrinsic_table_ptr_bind(c2, 'id_0')
    AND __intrinsic_table_ptr_bind(c3, 'id_1')
    __intrinsic_token_apply_and_prefix!(_ii_df_bind, (c4, c5, c6, c7), $agg_columns)
);

-- Cuts the time at every start and end of a span, and tells for each piece which spans are in it:
-- (ts, dur, group_id, id, interval_ends_at_ts). Where a span ends, the piece that begins there has a row for it with
-- interval_ends_at_ts = TRUE. Unfinished spans (-1) are left out.
CREATE PERFETTO MACRO interval_self_intersect(
  -- Spans: id, ts, dur.
  intervals TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _isi_spans AS (SELECT id, ts, dur, ts + dur AS ts_end FROM $intervals WHERE dur >= 0),
    _isi_cuts AS (SELECT ts FROM _isi_spans UNION SELECT ts_end FROM _isi_spans),
    _isi_pieces AS (
      SELECT
        ts,
        lead(ts, 1, ts) OVER (ORDER BY ts) - ts AS dur,
        row_number() OVER (ORDER BY ts) AS group_id
      FROM _isi_cuts
    ),
    _isi_in AS (
      SELECT ts, dur, id_0 AS group_id, id_1 AS id
      FROM _interval_intersect!(
        (
          (SELECT group_id AS id, ts, dur FROM _isi_pieces WHERE dur > 0),
          (SELECT id, ts, dur FROM _isi_spans WHERE dur > 0)
        ),
        ()
      )
    )
  SELECT ts, dur, group_id, id, 0 AS interval_ends_at_ts
  FROM _isi_in
  UNION ALL
  SELECT p.ts, p.dur, p.group_id, s.id, 1 AS interval_ends_at_ts
  FROM _isi_spans AS s
  JOIN _isi_pieces AS p ON p.ts = s.ts_end
  ORDER BY group_id
);
