-- trace: linux-kernel-overrun.pftrace
-- What the kernel lost is counted by cpu.
select name, idx, severity, value from stats where value > 0 and (severity in ('data_loss', 'error') or name glob '*overrun_delta')
order by name, idx;
