/* Events of the Trusty secure OS: calls into it, shared memory, its IPC. All are slices of the calling thread. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

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
    begin(e, ftrace_name(e, "trusty_smc:r0= %llu", (unsigned long long)field_u64(&f, FTRACE_TRUSTY_SMC_R0)));
}

static void smc_done(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    instant(e,
            ftrace_name(e, "trusty_smc_done:r0= %llu", (unsigned long long)field_u64(&f, FTRACE_TRUSTY_SMC_DONE_RET)));
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
    if (field_i64(&f, FTRACE_TRUSTY_STD_CALL32_DONE_RET) < 0)
        instant(e, ftrace_name(e, "trusty_err_std: err= %lld",
                               (long long)field_i64(&f, FTRACE_TRUSTY_STD_CALL32_DONE_RET)));
}

static void share_memory(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    begin(e,
          ftrace_name(e, "trusty_share_mem: len= %llu nents= %u lend= %u",
                      (unsigned long long)field_u64(&f, FTRACE_TRUSTY_SHARE_MEMORY_LEN),
                      field_u32(&f, FTRACE_TRUSTY_SHARE_MEMORY_NENTS), field_u32(&f, FTRACE_TRUSTY_SHARE_MEMORY_LEND)));
}

static void share_memory_done(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    instant(e, ftrace_name(e, "trusty_share_mem: handle= %llu ret= %d",
                           (unsigned long long)field_u64(&f, FTRACE_TRUSTY_SHARE_MEMORY_DONE_HANDLE),
                           field_i32(&f, FTRACE_TRUSTY_SHARE_MEMORY_DONE_RET)));
}

static void reclaim_memory(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    begin(e, ftrace_name(e, "trusty_reclaim_mem: id=%llu",
                         (unsigned long long)field_u64(&f, FTRACE_TRUSTY_RECLAIM_MEMORY_ID)));
}

static void reclaim_memory_done(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    if (field_i32(&f, FTRACE_TRUSTY_RECLAIM_MEMORY_DONE_RET) < 0)
        instant(
            e, ftrace_name(e, "trusty_reclaim_mem_err: err= %d", field_i32(&f, FTRACE_TRUSTY_RECLAIM_MEMORY_DONE_RET)));
}

static void irq(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    instant(e, ftrace_name(e, "trusty_irq: irq= %d", field_i32(&f, FTRACE_TRUSTY_IRQ_IRQ)));
}

static void ipc_handle_event(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    instant(e, ftrace_name(e, "trusty_ipc_handle_event: chan=%u srv_name=%.*s event=%u",
                           field_u32(&f, FTRACE_TRUSTY_IPC_HANDLE_EVENT_CHAN),
                           TEXT(&f, FTRACE_TRUSTY_IPC_HANDLE_EVENT_SRV_NAME),
                           field_u32(&f, FTRACE_TRUSTY_IPC_HANDLE_EVENT_EVENT_ID)));
}

static void ipc_connect(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    begin(e, ftrace_name(e, "tipc_connect: %.*s", TEXT(&f, FTRACE_TRUSTY_IPC_CONNECT_PORT)));
}

static void ipc_connect_end(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    if (field_i32(&f, FTRACE_TRUSTY_IPC_CONNECT_END_ERR))
        instant(e, ftrace_name(e, "tipc_err_connect:err= %d", field_i32(&f, FTRACE_TRUSTY_IPC_CONNECT_END_ERR)));
}

static void ipc_write(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    if (field_u64(&f, FTRACE_TRUSTY_IPC_WRITE_SHM_CNT))
        instant(e, ftrace_name(e, "tipc_write: %.*s shm_cnt:[%llu]", TEXT(&f, FTRACE_TRUSTY_IPC_WRITE_SRV_NAME),
                               (unsigned long long)field_u64(&f, FTRACE_TRUSTY_IPC_WRITE_SHM_CNT)));
    else
        instant(e, ftrace_name(e, "tipc_write: %.*s", TEXT(&f, FTRACE_TRUSTY_IPC_WRITE_SRV_NAME)));
    if (field_i32(&f, FTRACE_TRUSTY_IPC_WRITE_LEN_OR_ERR) < 0)
        instant(e, ftrace_name(e, "tipc_err_write:len_or_err= %d", field_i32(&f, FTRACE_TRUSTY_IPC_WRITE_LEN_OR_ERR)));
}

static void ipc_poll(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    instant(e, ftrace_name(e, "tipc_poll: %.*s", TEXT(&f, FTRACE_TRUSTY_IPC_POLL_SRV_NAME)));
}

static void ipc_read(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    begin(e, ftrace_name(e, "tipc_read: %.*s", TEXT(&f, FTRACE_TRUSTY_IPC_READ_SRV_NAME)));
}

static void ipc_read_end(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    end(e);
    if (field_i32(&f, FTRACE_TRUSTY_IPC_READ_END_LEN_OR_ERR) <= 0)
        instant(e,
                ftrace_name(e, "tipc_err_read:len_or_err= %d", field_i32(&f, FTRACE_TRUSTY_IPC_READ_END_LEN_OR_ERR)));
}

static void ipc_rx(const struct ftrace_event *e)
{
    instant(e, ftrace_text(e, "tipc_rx"));
}

static void enqueue_nop(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    instant(e, ftrace_name(e, "trusty_enqueue_nop: arg1= %u arg2= %u arg3=%u",
                           field_u32(&f, FTRACE_TRUSTY_ENQUEUE_NOP_ARG1), field_u32(&f, FTRACE_TRUSTY_ENQUEUE_NOP_ARG2),
                           field_u32(&f, FTRACE_TRUSTY_ENQUEUE_NOP_ARG3)));
}

const struct ftrace_handler ftrace_handlers_trusty[] = {
    {FTRACE_EVENT_TRUSTY_SMC, "trusty_smc", smc},
    {FTRACE_EVENT_TRUSTY_SMC_DONE, "trusty_smc_done", smc_done},
    {FTRACE_EVENT_TRUSTY_STD_CALL32, "trusty_std_call32", std_call32},
    {FTRACE_EVENT_TRUSTY_STD_CALL32_DONE, "trusty_std_call32_done", std_call32_done},
    {FTRACE_EVENT_TRUSTY_SHARE_MEMORY, "trusty_share_memory", share_memory},
    {FTRACE_EVENT_TRUSTY_SHARE_MEMORY_DONE, "trusty_share_memory_done", share_memory_done},
    {FTRACE_EVENT_TRUSTY_RECLAIM_MEMORY, "trusty_reclaim_memory", reclaim_memory},
    {FTRACE_EVENT_TRUSTY_RECLAIM_MEMORY_DONE, "trusty_reclaim_memory_done", reclaim_memory_done},
    {FTRACE_EVENT_TRUSTY_IRQ, "trusty_irq", irq},
    {FTRACE_EVENT_TRUSTY_IPC_HANDLE_EVENT, "trusty_ipc_handle_event", ipc_handle_event},
    {FTRACE_EVENT_TRUSTY_IPC_CONNECT, "trusty_ipc_connect", ipc_connect},
    {FTRACE_EVENT_TRUSTY_IPC_CONNECT_END, "trusty_ipc_connect_end", ipc_connect_end},
    {FTRACE_EVENT_TRUSTY_IPC_WRITE, "trusty_ipc_write", ipc_write},
    {FTRACE_EVENT_TRUSTY_IPC_POLL, "trusty_ipc_poll", ipc_poll},
    {FTRACE_EVENT_TRUSTY_IPC_READ, "trusty_ipc_read", ipc_read},
    {FTRACE_EVENT_TRUSTY_IPC_READ_END, "trusty_ipc_read_end", ipc_read_end},
    {FTRACE_EVENT_TRUSTY_IPC_RX, "trusty_ipc_rx", ipc_rx},
    {FTRACE_EVENT_TRUSTY_ENQUEUE_NOP, "trusty_enqueue_nop", enqueue_nop},
    {0, NULL, NULL},
};
