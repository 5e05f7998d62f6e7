/* Events of memory shared with devices: ION, DMA heaps, fastrpc. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

#include <stdio.h>

/* `heap` 0: the kernel does not name heaps. */
static void ion_counters(const struct ftrace_event *e, strid heap, int64_t total, int64_t change)
{
    const char *text = strpool_cstr(&e->m->st->strings, heap);
    strid total_name = heap ? ftrace_name(e, "mem.ion.%s", text) : ftrace_text(e, "mem.ion");
    strid change_name = heap ? ftrace_name(e, "mem.ion_change.%s", text) : ftrace_text(e, "mem.ion_change");
    ftrace_counter(e, FTRACE_TRACK(e, TRACK_COUNTER, "ion", total_name, DIM_S("heap_name", heap)), (double)total);
    uint32_t utid = event_utid(e);
    ftrace_counter(
        e, FTRACE_TRACK(e, TRACK_COUNTER, "ion_change", change_name, DIM_S("heap_name", heap), DIM_I("utid", utid)),
        (double)change);
}

/* The total is the one before the change. */
static void ion_heap(const struct ftrace_event *e, bool grow)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint64_t len = field_u64(&f, FTRACE_ION_HEAP_GROW_LEN);
    int64_t change = (int64_t)(grow ? len : 0 - len);
    strid heap = field_has(&f, FTRACE_ION_HEAP_GROW_HEAP_NAME) ? field_str(e, &f, FTRACE_ION_HEAP_GROW_HEAP_NAME)
                                                               : ftrace_text(e, "unknown");
    ion_counters(e, heap, (int64_t)(field_u64(&f, FTRACE_ION_HEAP_GROW_TOTAL_ALLOCATED) + (uint64_t)change), change);
}

static void ion_heap_grow(const struct ftrace_event *e)
{
    ion_heap(e, true);
}

static void ion_heap_shrink(const struct ftrace_event *e)
{
    ion_heap(e, false);
}

/* A slice as long as a buffer lives. */
static void buffer_slice(const struct ftrace_event *e, const char *type, const char *name, int64_t id, int64_t len)
{
    uint32_t set = ftrace_track_set(e, type, ftrace_text(e, name), NULL, 0);
    if (len > 0)
        ftrace_begin(e, track_set_begin(e->m->im->tracks, set, id), 0, ftrace_name(e, "%lld kB", (long long)len / 1024),
                     ARGSET_NONE);
    else
        ftrace_end(e, track_set_end(e->m->im->tracks, set, id), 0, 0, NULL);
}

static void ion_stat(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    int64_t len = field_i64(&f, FTRACE_ION_STAT_LEN);
    ion_counters(e, 0, field_i64(&f, FTRACE_ION_STAT_TOTAL_ALLOCATED), len);
    buffer_slice(e, "android_ion_allocations", "mem.ion_buffer", field_u32(&f, FTRACE_ION_STAT_BUFFER_ID), len);
}

static void dma_heap_stat(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    int64_t inode = field_i64(&f, FTRACE_DMA_HEAP_STAT_INODE), len = field_i64(&f, FTRACE_DMA_HEAP_STAT_LEN);
    ftrace_counter(e, ftrace_track(e, TRACK_COUNTER, "android_dma_heap", ftrace_text(e, "mem.dma_heap"), NULL, 0),
                   (double)field_u64(&f, FTRACE_DMA_HEAP_STAT_TOTAL_ALLOCATED));
    uint32_t change = track_intern_int(e->m->im->tracks, e->m->id, "android_dma_heap_change", TRACK_COUNTER, "utid",
                                       event_utid(e), ftrace_text(e, "mem.dma_heap_change"));
    small_args_add(e, &args, "inode", ARG_UINT, inode);
    ftrace_counter_args(e, e->ts, change, (double)len, small_args_set(e, &args));
    buffer_slice(e, "android_dma_allocations", "mem.dma_buffer", inode, len);
}

static void fastrpc_dma_stat(const struct ftrace_event *e)
{
    static const char *const domains[] = {"ASDP", "MDSP", "SDSP", "CDSP"};
    struct fields f;
    char domain[16];
    fields_read(e->payload, &f);
    uint32_t cid = field_u32(&f, FTRACE_FASTRPC_DMA_STAT_CID);
    if (cid < sizeof domains / sizeof *domains)
        snprintf(domain, sizeof domain, "%s", domains[cid]);
    else
        snprintf(domain, sizeof domain, "%u", cid);
    uint32_t total = track_intern_int(e->m->im->tracks, e->m->id, "fastrpc", TRACK_COUNTER, "cid", cid,
                                      ftrace_name(e, "mem.fastrpc[%s]", domain));
    ftrace_counter(e, total, (double)field_u64(&f, FTRACE_FASTRPC_DMA_STAT_TOTAL_ALLOCATED));
    uint32_t utid = event_utid(e);
    uint32_t change = FTRACE_TRACK(e, TRACK_COUNTER, "fastrpc_change", ftrace_name(e, "mem.fastrpc_change[%s]", domain),
                                   DIM_I("cid", cid), DIM_I("utid", utid));
    ftrace_counter(e, change, (double)field_i64(&f, FTRACE_FASTRPC_DMA_STAT_LEN));
}

const struct ftrace_handler ftrace_handlers_dma[] = {
    {FTRACE_EVENT_ION_HEAP_SHRINK, "ion_heap_shrink", ion_heap_shrink},
    {FTRACE_EVENT_ION_HEAP_GROW, "ion_heap_grow", ion_heap_grow},
    {FTRACE_EVENT_ION_STAT, "ion_stat", ion_stat},
    {FTRACE_EVENT_FASTRPC_DMA_STAT, "fastrpc_dma_stat", fastrpc_dma_stat},
    {FTRACE_EVENT_DMA_HEAP_STAT, "dma_heap_stat", dma_heap_stat},
    {0, NULL, NULL},
};
