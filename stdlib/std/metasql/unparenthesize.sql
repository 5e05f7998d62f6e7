-- Helpers for macros that take lists in parentheses.

CREATE PERFETTO MACRO __unparenthesize_identity(x Expr)
RETURNS Expr AS $x;

-- A list of expressions without the parentheses around it.
CREATE PERFETTO MACRO metasql_unparenthesize_exprlist(
  -- The list, in parentheses.
  expr ExprList
)
RETURNS UnparenExprList AS __intrinsic_token_apply!(__unparenthesize_identity, $expr);
