-- trace: linux-sched.pftrace
-- Arguments are decoded when they are asked for.
select name, count(*) as n, min(extract_arg(arg_set_id, 'prev_comm')) as prev, max(extract_arg(arg_set_id, 'irq')) as irq,
       max(extract_arg(arg_set_id, 'vec')) as vec
from ftrace_event group by name order by n desc, name;
select key, flat_key, value_type, int_value, string_value
from args where arg_set_id = (select arg_set_id from ftrace_event where name = 'irq_handler_entry' order by id limit 1);
