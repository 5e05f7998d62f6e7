-- The device whose power is estimated: the host of the recording, when there is a power model of it.
--
-- What CPUs, GPUs and others draw at which frequency is measured by those who make devices; nothing of it comes with Meridian.
-- Bring your own: include wattson.device_infos and the modules of wattson.curves, replace their tables
-- (CREATE OR REPLACE PERFETTO TABLE _wattson_device_map AS SELECT …), then include wattson.estimates, or what you want to ask.

-- Devices that there is a model of, and what the model calls them; none.
CREATE PERFETTO TABLE _wattson_device_map(
  -- The device as the trace tells it: its SoC, its codename or a part of its fingerprint.
  device STRING,
  -- The model's name for it.
  wattson_device STRING
) AS
SELECT '' AS device, '' AS wattson_device WHERE 0;

-- The model of the host; no row when there is none.
CREATE PERFETTO VIEW _wattson_device(
  -- The model's name for it.
  name STRING
) AS
SELECT wattson_device AS name
FROM _wattson_device_map
WHERE
  device IN (
    extract_metadata('android_soc_model'), extract_metadata('android_guest_soc_model'), extract_metadata('android_device_name')
  )
  OR extract_metadata('android_build_fingerprint') GLOB '*/' || device || ':*'
LIMIT 1;

-- CPUs of the host and what they share a frequency with (policy): the first CPU of their cluster. Without clusters, those with
-- the same frequencies belong together.
CREATE PERFETTO VIEW _dev_cpu_policy_map(
  -- The CPU.
  cpu LONG,
  -- Its policy.
  policy LONG
) AS
WITH
  alike AS (
    SELECT
      c.cpu,
      coalesce(
        'cluster ' || nullif(c.cluster_id, 0),
        (SELECT group_concat(f.freq) FROM (SELECT freq FROM cpu_available_frequencies WHERE ucpu = c.ucpu ORDER BY freq) AS f),
        'alike'
      ) AS kind
    FROM cpu AS c
    WHERE c.machine_id = 0
  )
SELECT a.cpu, min(a.cpu) OVER (PARTITION BY a.kind) AS policy
FROM alike AS a
WHERE EXISTS (SELECT 1 FROM _wattson_device);

-- Policies by number.
CREATE PERFETTO VIEW _device_policies AS
SELECT DISTINCT policy FROM _dev_cpu_policy_map;

-- How much longer than the kernel tells a CPU is awake when it comes out of deep sleep, in ns: (device, cpu, offset_ns); none.
CREATE PERFETTO TABLE _device_cpu_deep_idle_offsets(
  -- The model's name for the device.
  device STRING,
  -- The CPU.
  cpu LONG,
  -- How much longer.
  offset_ns LONG
) AS
SELECT '' AS device, 0 AS cpu, 0 AS offset_ns WHERE 0;

-- The deepest state of idle CPUs that models tell apart.
CREATE PERFETTO VIEW _deepest_idle AS
SELECT 1 AS idle;
