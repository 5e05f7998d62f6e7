select t.name, ts.state, count(*), sum(ts.dur), avg(ts.dur) from thread_state ts join thread t using (utid) group by t.name, ts.state order by 4 desc limit 30;
