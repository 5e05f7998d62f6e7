-- Names of slices without what is different each time, to count by.

-- Names that become the same text each, by the first pattern that fits.
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
      ('Texture upload*', 'Texture upload'),
      ('AssetManager::OpenNonAsset*', 'AssetManager::OpenNonAsset <...>'),
      ('AssetManager::OpenXmlAsset*', 'AssetManager::OpenXmlAsset <...>'),
      ('AssetManager::OpenAsset*', 'AssetManager::OpenAsset <...>'),
      ('*AssetInputStream*', 'AssetInputStream'),
      ('openTypedAssetFile*', 'openTypedAssetFile <...>'),
      ('LoadApkAssets*', 'LoadApkAssets <...>'),
      ('*AssetLoader:*', 'AssetLoader: <...>'),
      ('JIT compiling*', 'JIT compiling'),
      ('requested config :*', 'requested config : <...>'),
      ('/data/app*.apk', 'APK load'),
      ('OpenDexFilesFromOat*', 'OpenDexFilesFromOat'),
      ('Open oat file*', 'Open oat file'),
      ('Open dex file*', 'Open dex file'),
      ('VdexFile*', 'VdexFile'),
      ('GC: Wait For*', 'Garbage Collector'),
      ('prepareDispatchCycleLocked*', 'prepareDispatchCycleLocked <...>'),
      ('enqueueDispatchEntryAndStartDispatchCycleLocked*', 'enqueueDispatchEntryAndStartDispatchCycleLocked <...>'),
      ('Layers: *', 'Layers: <...>'),
      ('uid=*', 'uid = <...>'),
      ('wakeupap=*', 'wakeupap = <...>'),
      ('launchingActivity#*', 'launchingActivity#<...>'),
      ('updateUidStateUL*', 'updateUidStateUL <...>'),
      ('cpuhp*', 'cpuhp<...>'),
      ('atc*', 'atc<...>'),
      ('[0-9]* Alarm:*', 'Alarm: <...>'),
      ('[0-9]* Wifi:*', 'Wifi: <...>'),
      ('[0-9]* Sensor:*', 'Sensor: <...>'),
      ('*Cellular_data*', 'Cellular_data <...>'),
      ('*GET_ACTIVITY_INFO ModemActivityInfo*', '<...>GET_ACTIVITY_INFO ModemActivityInfo <...>'),
      ('UNSOL_SIGNAL_STRENGTH*', 'UNSOL_SIGNAL_STRENGTH <...>'),
      ('*GET_CELL_INFO_LIST*', '<...> GET_CELL_INFO_LIST <...>'),
      ('*VOICE_REGISTRATION_STATE*', '<...> VOICE_REGISTRATION_STATE <...>'),
      ('*DATA_REGISTRATION_STATE*', '<...> DATA_REGISTRATION_STATE <...>'),
      ('InputConsumer processing on ClientState*', 'InputConsumer processing on ClientState<...>')
  )
SELECT pattern, standard FROM rules;

-- The same for names about the display's vsync.
CREATE PERFETTO TABLE _android_vsync_slice_name_rules AS
WITH
  rules(pattern, standard) AS (
    VALUES
      ('beginFrame*', 'beginFrame <...>'),
      ('frameIsEarly*', 'frameIsEarly <...>'),
      ('*vsync*in*', 'vsync in <...>'),
      ('present for*vsyncIn*', 'present for vsync in <...>'),
      ('wait for earliest present time*', 'wait for earliest present time <vsync>'),
      ('present for Common Panel*', 'present for Common Panel'),
      ('frameTimelineInfo*', 'frameTimelineInfo <...>'),
      ('*setFrameTimelineInfo*', 'setFrameTimelineInfo <...>'),
      ('*AChoreographer_vsyncCallback*', 'AChoreographer_vsyncCallback <...>'),
      ('unsync-vsync-id=* isSfChoreo=false', 'unsync-vsync-id=<...> isSfChoreo=false'),
      ('unsync-vsync-id=* isSfChoreo=true', 'unsync-vsync-id=<...> isSfChoreo=true'),
      ('Discarding old vsync*', 'Discarding old vsync'),
      ('setDisplayModePtr*', 'setDisplayModePtr'),
      ('adjusting vsync by*', 'adjusting vsync by <...>'),
      ('Not-Adjusting vsync by*', 'Not-Adjusting vsync by <...>'),
      ('dropping stale frameNumber*', 'dropping stale frameNumber <...>'),
      ('Sensor event from com.google.sensor.camera_vsync*', 'Sensor event from com.google.sensor.camera_vsync <...>'),
      ('*DisplayInfo*', 'DisplayInfo <...>'),
      ('Choreographer#onVsync*', 'Choreographer#onVsync<...>'),
      ('appSf alarm*;*VSYNC in*', 'appSf alarm in <...>; vsync in <...>'),
      ('sf alarm*;*VSYNC in*', 'sf alarm in <...>; vsync in <...>'),
      ('app alarm*;*VSYNC in*', 'app alarm in <...>; vsync in <...>'),
      ('FT#*', 'FT#FrameTrackerEvent'),
      ('*isVsyncValid*', 'isVsyncValid <...>'),
      ('onHardwareVsyncRequest*', 'onHardwareVsyncRequest <...>'),
      ('onComposerHalVsync*', 'onComposerHalVsync <...>'),
      (
        'ensureMinFrameDurationIsKept*mNumVsyncsForFrame=*mPastExpectedPresentTimes.size()=*',
        'ensureMinFrameDurationIsKept mNumVsyncsForFrame=<...> mPastExpectedPresentTimes.size()=<...>'
      ),
      ('*lastVsyncDelta*', 'lastVsyncDelta=<...>'),
      ('mLastCommittedVsync in*', 'mLastCommittedVsync in <...>')
  )
SELECT pattern, standard FROM rules;

-- The name of a handler's work without the lambda that it runs: what stands in front of the first '$'.
CREATE PERFETTO FUNCTION _remove_lambda_name(
  name STRING
)
RETURNS STRING AS
SELECT __intrinsic_strip_hex(substr($name, 1, instr($name, '$') - 1), 2);

-- The name of a slice about the display's vsync without numbers.
CREATE PERFETTO FUNCTION _standardize_vsync_slice_name(
  name STRING
)
RETURNS STRING AS
SELECT
  coalesce(
    (SELECT standard FROM _android_vsync_slice_name_rules WHERE $name GLOB pattern LIMIT 1),
    __intrinsic_strip_hex($name, 2)
  );

-- The name of a wakelock without the numbers that each holder adds: "Wakelock(epolld280:system_serve".
CREATE PERFETTO FUNCTION _standardize_wakelock_slice_name(
  name STRING
)
RETURNS STRING AS
SELECT
  iif(
    $name GLOB 'Wakelock(epoll[dm]*' AND instr($name, ':') > 0,
    substr($name, 1, length('Wakelock(epolld')) || '<...>' || substr($name, instr($name, ':')),
    __intrinsic_strip_hex($name, 2)
  );

-- A name without numbers and places; handlers lose the name of the lambda.
CREATE PERFETTO FUNCTION android_standardize_slice_name(
  -- Name of a slice.
  name STRING
)
-- The name that such slices have in common.
RETURNS STRING AS
SELECT
  coalesce(
    iif($name GLOB 'drawLayer [[]*[]]*', substr($name, 1, instr($name, ']')), NULL),
    (SELECT standard FROM _android_slice_name_rules WHERE $name GLOB pattern LIMIT 1),
    CASE
      WHEN $name GLOB '* SurfaceView*(BLAST)#*'
        THEN substr($name, instr($name, 'SurfaceView'), instr($name, '#') - instr($name, 'SurfaceView'))
      WHEN $name GLOB 'Wakelock(epoll[dm]*' THEN _standardize_wakelock_slice_name($name)
      WHEN $name GLOB 'Transaction (Thread-*, *)'
        THEN substr($name, 1, instr($name, '(')) || 'Thread-<...>,' || substr($name, instr($name, ','))
      WHEN $name GLOB 'Transaction (*, *)' THEN substr($name, 1, instr($name, ',') + 1) || '<...>)'
      WHEN $name GLOB 'Lock contention on* (*' THEN substr($name, 1, instr($name, '(') - 1) || '<...>'
      WHEN $name GLOB '*Handler: *$*' THEN _remove_lambda_name(substr($name, instr($name, 'Handler:')))
      WHEN $name GLOB '*.*.*: *$*' OR $name GLOB '*.*$*: #*' THEN 'Handler: ' || _remove_lambda_name($name)
      WHEN $name GLOB 'deliverInputEvent*' THEN 'deliverInputEvent <...>'
      WHEN lower($name) GLOB '*vsync*' THEN _standardize_vsync_slice_name($name)
      WHEN $name GLOB 'StatsPull-*' THEN $name
      ELSE __intrinsic_strip_hex($name, 2)
    END
  );
