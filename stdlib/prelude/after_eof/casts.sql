-- Casts with the words of PerfettoSQL's types.

-- The value as an integer: 0 for text that is not a number.
CREATE PERFETTO MACRO cast_int(
  -- Any expression.
  value Expr
)
RETURNS Expr
AS
CAST($value AS INT);

-- The value as a floating point number: 0.0 for text that is not a number.
CREATE PERFETTO MACRO cast_double(
  -- Any expression.
  value Expr
)
RETURNS Expr
AS
CAST($value AS REAL);

-- The value as text.
CREATE PERFETTO MACRO cast_string(
  -- Any expression.
  value Expr
)
RETURNS Expr
AS
CAST($value AS TEXT);
