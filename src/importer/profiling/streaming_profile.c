/* Imports StreamingProfilePacket: the samples that Chrome takes of its own threads, many in a packet. */
#include "importer/profiling/profiling_internal.h"

#include "importer/sort/sorter.h"

static const char source[] = "chrome";

static void unknown_callstack(struct machine_ctx *m, int64_t ts, uint64_t callstack)
{
    struct args *args = &m->st->args;
    struct arg_list list = {0};
    arg_list_uint(args, &list, "callstack_iid", callstack);
    import_log(m, STAT_stackprofile_parser_error, ts, -1, args_intern(args, list.p, list.n));
    arg_list_free(&list);
}

static void add_sample(struct profiling_machine *s, int64_t ts, uint64_t callstack, struct seq_generation *g,
                       int32_t priority)
{
    struct machine_ctx *m = s->m;
    const struct sequence *seq = g->seq;
    int32_t pid = seq->has_thread ? seq->pid : 0,
            tid = seq->has_thread ? seq->tid : 0; /* not described: the idle one */
    uint32_t utid = process_tracker_update_thread_and_main(m->processes, tid, pid);
    uint32_t upid = process_tracker_process(m->processes, pid);
    uint32_t callsite = stack_profile_interned(m, g, upid, callstack);
    if (callsite == CALLSITE_NONE) {
        unknown_callstack(m, ts, callstack);
        return;
    }
    struct sample sample = {.ts = ts,
                            .source = import_str(m->im, source),
                            .upid = upid,
                            .utid = utid,
                            .async_context = COL_NULL,
                            .cpu = COL_NULL,
                            .callsite = callsite,
                            .session = COL_NULL,
                            .counter_set = COL_NULL};
    uint32_t row = sample_insert(s, &sample);
    if (row != UINT32_MAX && priority)
        chrome_stack_sample_extras_insert(
            m->st, &(struct chrome_stack_sample_extras_row){.profiler_sample_id = row, .process_priority = priority});
}

static void parse_samples(void *owner, const struct sort_event *events, size_t n)
{
    struct profiling_machine *s = owner;
    for (size_t i = 0; i < n; i++) /* a: number of the callstack, b: priority, generation */
        add_sample(s, events[i].ts, events[i].a, generation_at(s->m->im, (uint32_t)events[i].b),
                   (int32_t)(events[i].b >> 32));
}

void streaming_profile_add(struct packet *p, int64_t ts, uint64_t callstack_iid, int32_t priority)
{
    struct profiling_machine *s = p->m->profiling;
    struct sorter *sorter = p->m->im->sorter;
    if (s->sample_queue == UINT32_MAX)
        s->sample_queue = sorter_add_queue(sorter, parse_samples, s);
    if (s->sample_queue == UINT32_MAX)
        p->m->im->failed = true;
    else
        sorter_push(sorter, s->sample_queue,
                    (struct sort_event){ts, callstack_iid, (uint64_t)(uint32_t)priority << 32 | p->gen->index});
}
