-- Names of slices without what is different each time, to count by.

-- The first words of names that end in something else each time, and what they become.
CREATE PERFETTO TABLE _android_slice_name_rules AS
WITH
  rules(pattern, standard) AS (
    VALUES
      ('monitor contention with*', 'monitor contention with <...>'),
      ('SuspendThreadByThreadId*', 'SuspendThreadByThreadId <...>'),
      ('LoadApkAssetsFd*', 'LoadApkAssetsFd <...>'),
      ('relayoutWindow*', 'relayoutWindow <...>'),
      ('android.os.Handler: kotlinx.coroutines*', 'CoroutineContinuation'),
      ('Choreographer#doFrame*', 'Choreographer#doFrame'),
      ('DrawFrames*', 'DrawFrames'),
      ('AssetManager::OpenNonAsset*', 'AssetManager::OpenNonAsset <...>'),
      ('AssetManager::OpenXmlAsset*', 'AssetManager::OpenXmlAsset <...>'),
      ('AssetManager::OpenAsset*', 'AssetManager::OpenAsset <...>'),
      ('/data/app*.apk', 'APK load'),
      ('OpenDexFilesFromOat*', 'OpenDexFilesFromOat'),
      ('Open oat file*', 'Open oat file'),
      ('GC: Wait For*', 'Garbage Collector'),
      ('JIT compiling*', 'JIT compiling'),
      ('InputConsumer processing on ClientState*', 'InputConsumer processing on ClientState<...>'),
      ('Lock contention on thread list lock *', 'Lock contention on thread list lock <...>'),
      ('Lock contention on thread suspend count lock *', 'Lock contention on thread suspend count lock <...>'),
      ('Lock contention on a monitor lock *', 'Lock contention on a monitor lock <...>')
  )
SELECT pattern, standard FROM rules;

-- The name of a handler's work without the lambda that it runs: what stands in front of the first '$'.
CREATE PERFETTO FUNCTION _remove_lambda_name(
  name STRING
)
RETURNS STRING AS
SELECT iif(instr($name, '$') > 0, substr($name, 1, instr($name, '$') - 1), $name);

-- The name of work for a frame without the number of its vsync ("Choreographer#doFrame 1234").
CREATE PERFETTO FUNCTION _standardize_vsync_slice_name(
  name STRING
)
RETURNS STRING AS
SELECT regexp_replace_simple($name, '[ -]?[0-9]+$', '');

-- The name of a wakelock without the numbers that each holder adds.
CREATE PERFETTO FUNCTION _standardize_wakelock_slice_name(
  name STRING
)
RETURNS STRING AS
SELECT __intrinsic_strip_hex($name, 1);

-- A name without numbers and places; handlers lose the name of the lambda.
CREATE PERFETTO FUNCTION android_standardize_slice_name(
  -- Name of a slice.
  name STRING
)
-- The name that such slices have in common.
RETURNS STRING AS
SELECT
  coalesce(
    (SELECT standard FROM _android_slice_name_rules WHERE $name GLOB pattern LIMIT 1),
    iif(
      $name GLOB '*Handler: *$*',
      'Handler: ' || _remove_lambda_name(substr($name, instr($name, 'Handler: ') + length('Handler: '))),
      NULL
    ),
    iif($name GLOB '*$*: #[0-9]*', 'Handler: ' || _remove_lambda_name($name), NULL),
    iif($name GLOB 'Transaction (*, *)', substr($name, 1, instr($name, ',')) || ' <...>)', NULL),
    __intrinsic_strip_hex($name, 3)
  );
