/* Events of the Trusty secure OS: calls into it, shared memory, its IPC. All are slices of the calling thread. */
#include "importer/ftrace/ftrace_internal.h"

static uint32_t own_track(const struct ftrace_event *e)
{
    return ftrace_thread_track(e, event_utid(e));
}

static void begin(const struct ftrace_event *e, strid name)
{
    ftrace_begin(e, own_track(e), ftrace_text(e, "tipc"), name, ARGSET_NONE);
}

static void end(const struct ftrace_event *e)
{
    ftrace_end(e, own_track(e), ftrace_text(e, "tipc"), 0, NULL);
}

static void instant(const struct ftrace_event *e, strid name)
{
    ftrace_instant(e, own_track(e), ftrace_text(e, "tipc"), name, ARGSET_NONE);
}

#define TEXT(f, n) (int)field_bytes(f, n).len, (const char *)field_bytes(f, n).p

static void smc(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    begin(e, ftrace_name(e, "trusty_smc:r0= %llu", (unsigned long long)field_u64(&f, 1)));
}

static void smc_done(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    instant(e, ftrace_name(e, "trusty_smc_done:r0= %llu", (unsigned long long)field_u64(&f, 1)));
}

static void std_call32(const struct ftrace_event *e)
{
    begin(e, ftrace_text(e, "trusty_std"));
}

static void std_call32_done(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    if (field_i64(&f, 1) < 0)
        instant(e, ftrace_name(e, "trusty_err_std: err= %lld", (long long)field_i64(&f, 1)));
}

static void share_memory(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    begin(e, ftrace_name(e, "trusty_share_mem: len= %llu nents= %u lend= %u", (unsigned long long)field_u64(&f, 1),
                         field_u32(&f, 3), field_u32(&f, 2)));
}

static void share_memory_done(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    instant(e, ftrace_name(e, "trusty_share_mem: handle= %llu ret= %d", (unsigned long long)field_u64(&f, 1),
                           field_i32(&f, 5)));
}

static void reclaim_memory(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    begin(e, ftrace_name(e, "trusty_reclaim_mem: id=%llu", (unsigned long long)field_u64(&f, 1)));
}

static void reclaim_memory_done(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    if (field_i32(&f, 2) < 0)
        instant(e, ftrace_name(e, "trusty_reclaim_mem_err: err= %d", field_i32(&f, 2)));
}

static void irq(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    instant(e, ftrace_name(e, "trusty_irq: irq= %d", field_i32(&f, 1)));
}

static void ipc_handle_event(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    instant(e, ftrace_name(e, "trusty_ipc_handle_event: chan=%u srv_name=%.*s event=%u", field_u32(&f, 1), TEXT(&f, 3),
                           field_u32(&f, 2)));
}

static void ipc_connect(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    begin(e, ftrace_name(e, "tipc_connect: %.*s", TEXT(&f, 2)));
}

static void ipc_connect_end(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    if (field_i32(&f, 2))
        instant(e, ftrace_name(e, "tipc_err_connect:err= %d", field_i32(&f, 2)));
}

static void ipc_write(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    if (field_u64(&f, 5))
        instant(e,
                ftrace_name(e, "tipc_write: %.*s shm_cnt:[%llu]", TEXT(&f, 6), (unsigned long long)field_u64(&f, 5)));
    else
        instant(e, ftrace_name(e, "tipc_write: %.*s", TEXT(&f, 6)));
    if (field_i32(&f, 4) < 0)
        instant(e, ftrace_name(e, "tipc_err_write:len_or_err= %d", field_i32(&f, 4)));
}

static void ipc_poll(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    instant(e, ftrace_name(e, "tipc_poll: %.*s", TEXT(&f, 3)));
}

static void ipc_read(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    begin(e, ftrace_name(e, "tipc_read: %.*s", TEXT(&f, 2)));
}

static void ipc_read_end(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    if (field_i32(&f, 3) <= 0)
        instant(e, ftrace_name(e, "tipc_err_read:len_or_err= %d", field_i32(&f, 3)));
}

static void ipc_rx(const struct ftrace_event *e)
{
    instant(e, ftrace_text(e, "tipc_rx"));
}

static void enqueue_nop(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    instant(e, ftrace_name(e, "trusty_enqueue_nop: arg1= %u arg2= %u arg3=%u", field_u32(&f, 1), field_u32(&f, 2),
                           field_u32(&f, 3)));
}

const struct ftrace_handler ftrace_handlers_trusty[] = {
    {445, "trusty_smc", smc},
    {446, "trusty_smc_done", smc_done},
    {447, "trusty_std_call32", std_call32},
    {448, "trusty_std_call32_done", std_call32_done},
    {449, "trusty_share_memory", share_memory},
    {450, "trusty_share_memory_done", share_memory_done},
    {451, "trusty_reclaim_memory", reclaim_memory},
    {452, "trusty_reclaim_memory_done", reclaim_memory_done},
    {453, "trusty_irq", irq},
    {454, "trusty_ipc_handle_event", ipc_handle_event},
    {455, "trusty_ipc_connect", ipc_connect},
    {456, "trusty_ipc_connect_end", ipc_connect_end},
    {457, "trusty_ipc_write", ipc_write},
    {458, "trusty_ipc_poll", ipc_poll},
    {460, "trusty_ipc_read", ipc_read},
    {461, "trusty_ipc_read_end", ipc_read_end},
    {462, "trusty_ipc_rx", ipc_rx},
    {464, "trusty_enqueue_nop", enqueue_nop},
    {0, NULL, NULL},
};
