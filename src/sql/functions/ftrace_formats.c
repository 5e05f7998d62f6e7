/* How the args of kernel events are printed: one table for each dialect. */
#include "sql/functions/ftrace_formats.h"

#include <string.h>

#define SWITCH                                                                                                         \
    " prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={prev_prio} prev_state={prev_state:state} ==> "              \
    "next_comm={next_comm} next_pid={next_pid} next_prio={next_prio}"
#define WAKEUP " comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:cpu}"
#define WORK   " work struct {work:hex}"
#define I2C    " i2c-{adapter_nr} #{msg_nr} a={addr:hex3} f={flags:hex4} l={len}"

/* The kernel's own text. */
static const struct ftrace_format kernel_formats[] = {
    {"print", "tracing_mark_write", " {buf}"},
    {"sched_switch", NULL, SWITCH},
    {"sched_waking", NULL, WAKEUP},
    {"sched_wakeup", NULL, WAKEUP},
    {"sched_wakeup_new", NULL, WAKEUP},
    {"irq_handler_exit", NULL, " irq={irq} ret={ret:handled}"},
    {"softirq_entry", NULL, " vec={vec:vector}"},
    {"softirq_exit", NULL, " vec={vec:vector}"},
    {"softirq_raise", NULL, " vec={vec:vector}"},
    {"sched_process_fork", NULL, " comm={parent_comm} pid={parent_pid} child_comm={child_comm} child_pid={child_pid}"},
    {"sched_stat_runtime", NULL, " comm={comm} pid={pid} runtime={runtime} [ns]"},
    {"sched_blocked_reason", NULL, " pid={pid} iowait={io_wait} caller={caller}"},
    {"sched_pi_setprio", NULL, " comm={comm} pid={pid} oldprio={oldprio} newprio={newprio}"},
    {"sys_enter", NULL, " NR {id} ({args:hex})"},
    {"sys_exit", NULL, " NR {id} = {ret}"},
    {"task_newtask", NULL, " pid={pid} comm={comm} clone_flags={clone_flags:hex} oom_score_adj={oom_score_adj}"},
    {"task_rename", NULL, " pid={pid} oldcomm={oldcomm} newcomm={newcomm} oom_score_adj={oom_score_adj}"},
};

/* What trace viewers know. */
static const struct ftrace_format viewer_formats[] = {
    {"print", "tracing_mark_write", " {buf:line}"},
    {"sched_switch", NULL, SWITCH},
    {"sched_wakeup", NULL, WAKEUP},
    {"clock_set_rate", NULL, " {name} state={state} cpu_id={cpu_id}"},
    {"clk_set_rate", NULL, " {name} {rate}"},
    {"clock_enable", NULL, "{name} state={state} cpu_id={cpu_id}"},
    {"clock_disable", NULL, "{name} state={state} cpu_id={cpu_id}"},
    {"binder_transaction", NULL,
     " transaction={debug_id} dest_node={target_node} dest_proc={to_proc} dest_thread={to_thread} reply={reply} "
     "flags=0x{flags:hex} code=0x{code:hex}"},
    {"binder_transaction_alloc_buf", NULL, " transaction={debug_id} data_size={data_size} offsets_size={offsets_size}"},
    {"binder_transaction_received", NULL, " transaction={debug_id}"},
    {"mm_filemap_add_to_page_cache", NULL,
     " dev {s_dev:device} ino {i_ino:hex} page=0000000000000000 pfn={pfn} ofs={index:offset}"},
    {"sched_blocked_reason", NULL, " pid={pid} iowait={io_wait} caller={caller:caller}"},
    {"workqueue_activate_work", NULL, WORK},
    {"workqueue_execute_start", NULL, WORK ": function {function:caller}"},
    {"workqueue_execute_end", NULL, WORK},
    {"workqueue_queue_work", NULL,
     " work struct={work:hex} function={function:caller} workqueue={workqueue:hex}{req_cpu}{cpu}"},
    {"irq_handler_entry", NULL, " irq={irq} name={name}"},
    {"irq_handler_exit", NULL, " irq={irq} ret={ret:handled}"},
    {"softirq_entry", NULL, " vec={vec:vector}"},
    {"softirq_exit", NULL, " vec={vec:vector}"},
    {"cgroup_attach_task", NULL,
     "{dst_root:arg}{dst_id:arg}{cname:cgroup}{dst_level:arg}{dst_path:arg}{pid:arg}{comm:arg}"},
    {"tracing_mark_write", NULL, "{trace_begin:begin}|{pid}|{trace_name}"},
    {"dpu_tracing_mark_write", "tracing_mark_write", "{type:char}|{pid}|{name}|{value}"},
    {"g2d_tracing_mark_write", "tracing_mark_write", "{type:char}|{pid}|{name}|{value}"},
    {"samsung_tracing_mark_write", NULL, "{trace_type:char}|{pid}|{trace_name}|{value}"},
    {"panel_write_generic", NULL, "{type:char}|{pid}|{name}|{value}"},
    {"hrtimer_expire_entry", NULL, " function={function}"},
    {"i2c_read", NULL, I2C},
    {"i2c_write", NULL, I2C " [{buf:bytes}]"},
    {"i2c_reply", NULL, I2C " [{buf:bytes}]"},
    {"i2c_result", NULL, " i2c-{adapter_nr} n={nr_msgs} ret={ret}"},
};

const struct ftrace_format *ftrace_format_find(const char *event, bool kernel)
{
    const struct ftrace_format *p = kernel ? kernel_formats : viewer_formats;
    size_t n = kernel ? sizeof kernel_formats / sizeof *p : sizeof viewer_formats / sizeof *p;
    for (size_t i = 0; i < n; i++)
        if (strcmp(p[i].event, event) == 0)
            return &p[i];
    return NULL;
}

const struct gfp_name gfp_names[] = {
    {0x4352ca, "TRANSHUGE"},
    {0x24200ca, "HIGHUSER_MOVABLE"},
    {0x24200c2, "HIGHUSER"},
    {0x24200c0, "USER"},
    {0x24000d0, "TEMPORARY"},
    {0x24000c0, "KERNEL"},
    {0x2400040, "NOFS"},
    {0x2080020, "ATOMIC"},
    {0x2400000, "NOIO"},
    {0x20, "HIGH"},
    {0x80000, "ATOMIC"},
    {0x40, "IO"},
    {0x100, "COLD"},
    {0x200, "NOWARN"},
    {0x400, "REPEAT"},
    {0x800, "NOFAIL"},
    {0x1000, "NORETRY"},
    {0x4000, "COMP"},
    {0x8000, "ZERO"},
    {0x10000, "NOMEMALLOC"},
    {0x2000, "MEMALLOC"},
    {0x20000, "HARDWALL"},
    {0x40000, "THISNODE"},
    {0x10, "RECLAIMABLE"},
    {0x8, "MOVABLE"},
    {0x200000, "NOTRACK"},
    {0x400000, "DIRECT_RECLAIM"},
    {0x2000000, "KSWAPD_RECLAIM"},
    {0x800000, "OTHER_NODE"},
};
const size_t n_gfp_names = sizeof gfp_names / sizeof *gfp_names;
