-- Frequencies of the host's CPUs over the whole trace.

INCLUDE PERFETTO MODULE linux.cpu.frequency;
INCLUDE PERFETTO MODULE wattson.device_infos;
INCLUDE PERFETTO MODULE wattson.utils;

-- (ts, dur, freq, cpu, policy); freq is NULL before it is known.
CREATE PERFETTO TABLE _adjusted_cpu_freq AS
SELECT g.ts, g.dur, g.value AS freq, g.cpu, m.policy
FROM _gapless_by_cpu!((SELECT ts, dur, ucpu AS cpu, freq AS value FROM cpu_frequency_counters)) AS g
JOIN _dev_cpu_policy_map AS m USING (cpu)
ORDER BY g.ts;
