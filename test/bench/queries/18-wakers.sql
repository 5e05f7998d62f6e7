select w.name, t.name, count(*) from thread_state s join thread t on t.utid = s.utid join thread w on w.utid = s.waker_utid group by 1, 2 order by 3 desc, 1, 2 limit 30;
