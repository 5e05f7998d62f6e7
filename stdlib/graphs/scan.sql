-- Values carried along the edges of a graph.

CREATE PERFETTO MACRO _graph_scan_df_agg(x ColumnName, y ColumnName)
RETURNS _ProjectionFragment AS __intrinsic_stringify!($x), s.$y;

CREATE PERFETTO MACRO _graph_scan_bind(x ColumnName, y ColumnName)
RETURNS Expr AS __intrinsic_table_ptr_bind($x, __intrinsic_stringify!($y));

CREATE PERFETTO MACRO _graph_scan_select(x ColumnName, y ColumnName)
RETURNS _ProjectionFragment AS $x AS $y;

-- Begins with the rows of init_table, which are results as they are, and follows the edges: what comes to the nodes behind
-- goes through the step, and what that gives goes on. Gives id and the columns.
CREATE PERFETTO MACRO _graph_scan(
  -- Edges: source_node_id, dest_node_id.
  graph_table TableOrSubquery,
  -- Start: id and the columns.
  init_table TableOrSubquery,
  -- The columns carried along, in parentheses.
  scan_columns ColumnNameList,
  -- A SELECT over $table that gives id and the columns.
  step_query TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    c0 AS id
    __intrinsic_token_apply_prefix!(_graph_scan_select, (c1, c2, c3, c4, c5, c6, c7), $scan_columns)
  FROM __intrinsic_table_ptr(
    __intrinsic_graph_scan(
      (SELECT __intrinsic_graph_agg(g.source_node_id, g.dest_node_id) FROM $graph_table AS g),
      (
        SELECT __intrinsic_row_dataframe_agg(
          'id', s.id
          __intrinsic_token_apply_prefix!(_graph_scan_df_agg, $scan_columns, $scan_columns)
        )
        FROM $init_table AS s
      ),
      __intrinsic_stringify_ignore_table!($step_query),
      __intrinsic_stringify!($scan_columns)
    )
  )
  WHERE
    __intrinsic_table_ptr_bind(c0, 'id')
    __intrinsic_token_apply_and_prefix!(_graph_scan_bind, (c1, c2, c3, c4, c5, c6, c7), $scan_columns)
);

-- The same where nodes have rows of their own in init_table, and the step brings them together with what came along the
-- edges. Rows of nodes that no edge leads to are results as they are.
CREATE PERFETTO MACRO _graph_aggregating_scan(
  -- Edges: source_node_id, dest_node_id.
  graph_table TableOrSubquery,
  -- Own rows: id and the columns.
  init_table TableOrSubquery,
  -- The columns, in parentheses.
  agg_columns ColumnNameList,
  -- A SELECT over $table that gives id and the columns, one row a node.
  agg_query TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    c0 AS id
    __intrinsic_token_apply_prefix!(_graph_scan_select, (c1, c2, c3, c4, c5, c6, c7), $agg_columns)
  FROM __intrinsic_table_ptr(
    __intrinsic_graph_aggregating_scan(
      (SELECT __intrinsic_graph_agg(g.source_node_id, g.dest_node_id) FROM $graph_table AS g),
      (
        SELECT __intrinsic_row_dataframe_agg(
          'id', s.id
          __intrinsic_token_apply_prefix!(_graph_scan_df_agg, $agg_columns, $agg_columns)
        )
        FROM $init_table AS s
      ),
      __intrinsic_stringify_ignore_table!($agg_query),
      __intrinsic_stringify!($agg_columns)
    )
  )
  WHERE
    __intrinsic_table_ptr_bind(c0, 'id')
    __intrinsic_token_apply_and_prefix!(_graph_scan_bind, (c1, c2, c3, c4, c5, c6, c7), $agg_columns)
);
