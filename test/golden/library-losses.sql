-- trace: linux-kernel-overrun.pftrace
-- What the library says of a recording that lost data.
include perfetto module dataloss.*;
select name, idx, severity, value, lost_by, remedy != '' as has_remedy from dataloss_summary order by name, idx;
select dataloss_is_clean() as clean;
select ucpu, gap_count, gap_dur, longest_dur from dataloss_sched_gaps_by_cpu order by ucpu;
