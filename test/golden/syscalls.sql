-- trace: linux-syscalls.pftrace.gz
-- System calls are slices of their thread.
select s.name, count(*) as n, max(s.dur) as longest from slice s join thread_track t on s.track_id = t.id
where s.name glob 'sys_*' group by s.name order by n desc, s.name limit 15;
