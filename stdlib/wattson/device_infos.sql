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

-- Policies of a device whose traces do not tell them right: (device, cpu, policy); none. They count before what traces tell.
CREATE PERFETTO TABLE _cpu_to_policy_map(
  -- The model's name for the device.
  device STRING,
  -- The CPU.
  cpu LONG,
  -- Its policy.
  policy LONG
) AS
SELECT '' AS device, 0 AS cpu, 0 AS policy WHERE 0;

-- CPUs of the host and what they share a frequency with (policy): the first CPU of their cluster. Without clusters, those with
-- the same frequencies belong together. Hosts without a model have them too.
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
SELECT a.cpu, coalesce(m.policy, min(a.cpu) OVER (PARTITION BY a.kind)) AS policy
FROM alike AS a
LEFT JOIN _cpu_to_policy_map AS m ON m.device IN (SELECT name FROM _wattson_device) AND m.cpu = a.cpu;

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


-- CPUs by policy, as bits: (cpu, policy, policy_mask). Bit N stands for CPU N; a policy works as long as one of its CPUs does.
CREATE PERFETTO VIEW _policy_masks AS
SELECT m.cpu, m.policy, (SELECT sum(1 << o.cpu) FROM _dev_cpu_policy_map AS o WHERE o.policy = m.policy) AS policy_mask
FROM _dev_cpu_policy_map AS m;

-- Which of its GPUs a device's model means: (device, gpu_id); none: the first.
CREATE PERFETTO TABLE _gpuid_map(
  -- The model's name for the device.
  device STRING,
  -- The kernel's number of the GPU.
  gpu_id LONG
) AS
SELECT '' AS device, 0 AS gpu_id WHERE 0;

-- Idle states of devices that have more of them than models tell apart: (device, nominal_idle, override_idle); none. The state of a CPU
-- that is awake is -1.
CREATE PERFETTO TABLE _idle_state_map(
  -- The model's name for the device.
  device STRING,
  -- The state that the kernel tells.
  nominal_idle LONG,
  -- The state of the model that it counts as.
  override_idle LONG
) AS
SELECT '' AS device, 0 AS nominal_idle, 0 AS override_idle WHERE 0;

-- Those of the host: (nominal_idle, override_idle).
CREATE PERFETTO VIEW _idle_state_map_override AS
SELECT m.nominal_idle, m.override_idle
FROM _idle_state_map AS m
JOIN _wattson_device AS d ON d.name = m.device;

-- The deepest state of idle CPUs that the model tells apart.
CREATE PERFETTO VIEW _deepest_idle AS
SELECT coalesce(max(override_idle), 1) AS idle FROM _idle_state_map_override;

-- Devices whose shared unit has a frequency of its own, told by devfreq; none.
CREATE PERFETTO TABLE _use_devfreq(
  -- The model's name for the device.
  device STRING
) AS
SELECT '' AS device WHERE 0;

-- A row if the host is one of them …
CREATE PERFETTO VIEW _use_devfreq_for_calc AS
SELECT d.name AS device FROM _wattson_device AS d JOIN _use_devfreq AS u ON u.device = d.name;

-- … and a row if not.
CREATE PERFETTO VIEW _skip_devfreq_for_calc AS
SELECT name AS device FROM _wattson_device WHERE NOT EXISTS (SELECT 1 FROM _use_devfreq_for_calc);

-- CPUs whose policy decides by frequency, not by power, for those that depend on it: (device, cpu); none.
CREATE PERFETTO TABLE _vote_by_freq(
  -- The model's name for the device.
  device STRING,
  -- The CPU.
  cpu LONG
) AS
SELECT '' AS device, 0 AS cpu WHERE 0;

-- How each CPU of the host decides: (cpu, vote_by_freq).
CREATE PERFETTO VIEW _dev_vote_by_freq AS
SELECT m.cpu, v.cpu IS NOT NULL AS vote_by_freq
FROM _dev_cpu_policy_map AS m
JOIN _wattson_device AS d
LEFT JOIN _vote_by_freq AS v ON v.device = d.name AND v.cpu = m.cpu;
