-- The unit that ARM's clusters share: its frequency, and the accesses to its cache and beyond.

INCLUDE PERFETTO MODULE linux.devfreq;
INCLUDE PERFETTO MODULE wattson.device_infos;

-- Events of a counter by ns, between each two samples. One of a CPU ("…_cpu0") tells those since the sample before, another one all so far.
CREATE PERFETTO FUNCTION _get_rate(
  -- Name of the counter.
  event STRING
)
RETURNS TABLE(
  -- When the span between the samples began.
  ts TIMESTAMP,
  -- Duration of the span between the samples in nanoseconds.
  dur DURATION,
  -- Events by ns.
  access_rate DOUBLE
) AS
SELECT ts, dur, iif($event GLOB '*_cpu0', value, next_value - value) / dur AS access_rate
FROM (
  SELECT
    c.ts,
    lead(c.ts) OVER (PARTITION BY c.track_id ORDER BY c.ts) - c.ts AS dur,
    c.value,
    lead(c.value) OVER (PARTITION BY c.track_id ORDER BY c.ts) AS next_value
  FROM counter AS c
  JOIN counter_track AS t ON t.id = c.track_id
  WHERE t.name = $event AND t.machine_id = 0
)
WHERE dur > 0;

-- Accesses that went on to memory.
CREATE PERFETTO TABLE _arm_l3_miss_rate AS
SELECT ts, dur, access_rate AS l3_miss_rate FROM _get_rate('arm_dsu_0/bus_access/_cpu0')
UNION ALL
SELECT ts, dur, access_rate
FROM _get_rate('arm_dsu_0-bus_access')
WHERE NOT EXISTS (SELECT 1 FROM counter_track WHERE name = 'arm_dsu_0/bus_access/_cpu0');

-- Accesses to the cache.
CREATE PERFETTO TABLE _arm_l3_hit_rate AS
SELECT ts, dur, access_rate AS l3_hit_rate FROM _get_rate('arm_dsu_0/l3d_cache/_cpu0')
UNION ALL
SELECT ts, dur, access_rate
FROM _get_rate('arm_dsu_0-l3d_cache')
WHERE NOT EXISTS (SELECT 1 FROM counter_track WHERE name = 'arm_dsu_0/l3d_cache/_cpu0');

CREATE VIRTUAL TABLE _arm_l3_rates_joined USING span_outer_join(_arm_l3_miss_rate, _arm_l3_hit_rate);

-- Both: (ts, dur, l3_hit_rate, l3_miss_rate).
CREATE PERFETTO TABLE _arm_l3_rates AS
SELECT ts, dur, l3_hit_rate, l3_miss_rate FROM _arm_l3_rates_joined;

-- (ts, dur, dsu_freq); a row over the whole trace without a frequency when it is not told.
CREATE PERFETTO TABLE _wattson_dsu_frequency AS
SELECT ts, dur, dsu_freq FROM linux_devfreq_dsu_counter
UNION ALL
SELECT trace_start(), coalesce(min(ts), trace_end()) - trace_start(), NULL
FROM linux_devfreq_dsu_counter
HAVING coalesce(min(ts), trace_end()) > trace_start()
ORDER BY 1;
