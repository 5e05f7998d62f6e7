select state, sum(case when dur > 1000000 then 1 else 0 end), total(dur), min(dur), max(dur) from thread_state where dur >= 0 group by state order by state;
