-- What V8, the JavaScript engine, tells about the code it made.

INCLUDE PERFETTO MODULE stack_trace.jit;

-- Instances of the engine.
CREATE PERFETTO VIEW v8_isolate(
  -- Number of the isolate.
  v8_isolate_id LONG,
  -- Row of process.
  upid JOINID(process.id),
  -- V8's own number of the isolate.
  internal_isolate_id LONG,
  -- Address of the built-in code.
  embedded_blob_code_start_address LONG,
  -- Bytes of the built-in code.
  embedded_blob_code_size LONG,
  -- Address of the range for compiled code; NULL: none.
  code_range_base_address LONG,
  -- Bytes of that range.
  code_range_size LONG,
  -- Do several isolates share that range?
  shared_code_range LONG,
  -- Address of the copy of the built-in code in that range; NULL: none.
  embedded_blob_code_copy_start_address LONG
) AS
SELECT
  id AS v8_isolate_id,
  upid,
  internal_isolate_id,
  embedded_blob_code_start_address,
  embedded_blob_code_size,
  code_range_base_address,
  code_range_size,
  shared_code_range,
  embedded_blob_code_copy_start_address
FROM __intrinsic_v8_isolate;

-- JavaScript sources.
CREATE PERFETTO VIEW v8_js_script(
  -- Number of the script.
  v8_js_script_id LONG,
  -- The isolate: v8_isolate_id of v8_isolate.
  v8_isolate_id LONG,
  -- V8's own number of the script.
  internal_script_id LONG,
  -- Kind of script.
  script_type STRING,
  -- Name or address of the script.
  name STRING,
  -- Text of the script, where it was recorded.
  source STRING
) AS
SELECT
  id AS v8_js_script_id,
  v8_isolate_id,
  internal_script_id,
  script_type,
  name,
  source
FROM __intrinsic_v8_js_script;

-- WebAssembly modules.
CREATE PERFETTO VIEW v8_wasm_script(
  -- Number of the module of WebAssembly.
  v8_wasm_script_id LONG,
  -- The isolate: v8_isolate_id of v8_isolate.
  v8_isolate_id LONG,
  -- V8's own number of the script.
  internal_script_id LONG,
  -- URL of the page or script.
  url STRING,
  -- The module itself, where it was recorded.
  wire_bytes BYTES,
  -- Text of the module, where it was recorded.
  source STRING
) AS
SELECT
  id AS v8_wasm_script_id,
  v8_isolate_id,
  internal_script_id,
  url,
  base64_decode(wire_bytes_base64) AS wire_bytes,
  source
FROM __intrinsic_v8_wasm_script;

-- JavaScript functions.
CREATE PERFETTO VIEW v8_js_function(
  -- Number of the function.
  v8_js_function_id LONG,
  -- Name of the function.
  name STRING,
  -- The script: v8_js_script_id of v8_js_script.
  v8_js_script_id LONG,
  -- Is it the code outside all functions?
  is_toplevel BOOL,
  -- Kind of function.
  kind STRING,
  -- Line where it begins.
  line LONG,
  -- Column where it begins.
  col LONG
) AS
SELECT
  id AS v8_js_function_id,
  name,
  v8_js_script_id,
  is_toplevel,
  kind,
  line,
  col
FROM __intrinsic_v8_js_function;

-- Code of JavaScript functions.
CREATE PERFETTO VIEW _v8_js_code(
  id LONG,
  jit_code_id LONG,
  v8_js_function_id LONG,
  tier STRING,
  bytecode BYTES
) AS
SELECT
  id,
  jit_code_id,
  v8_js_function_id,
  tier,
  base64_decode(bytecode_base64) AS bytecode
FROM __intrinsic_v8_js_code;

-- Code of the engine itself.
CREATE PERFETTO VIEW _v8_internal_code(
  id LONG,
  jit_code_id LONG,
  v8_isolate_id LONG,
  function_name STRING,
  code_type STRING
) AS
SELECT
  id,
  jit_code_id,
  v8_isolate_id,
  function_name,
  code_type
FROM __intrinsic_v8_internal_code;

-- Code of WebAssembly functions.
CREATE PERFETTO VIEW _v8_wasm_code(
  id LONG,
  jit_code_id LONG,
  v8_isolate_id LONG,
  v8_wasm_script_id LONG,
  function_name STRING,
  tier STRING,
  code_offset_in_module LONG
) AS
SELECT
  id,
  jit_code_id,
  v8_isolate_id,
  v8_wasm_script_id,
  function_name,
  tier,
  code_offset_in_module
FROM __intrinsic_v8_wasm_code;

-- Code of regular expressions.
CREATE PERFETTO VIEW _v8_regexp_code(
  id LONG,
  jit_code_id LONG,
  v8_isolate_id LONG,
  pattern STRING
) AS
SELECT
  id,
  jit_code_id,
  v8_isolate_id,
  pattern
FROM __intrinsic_v8_regexp_code;
