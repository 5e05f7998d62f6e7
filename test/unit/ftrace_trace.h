/* Hand-made ftrace bundles for tests: written with a pb_writer, imported as a pipe would be. */
#ifndef MERIDIAN_TEST_FTRACE_TRACE_H
#define MERIDIAN_TEST_FTRACE_TRACE_H

#include "importer/ftrace/ftrace_internal.h"
#include "importer/importer.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <stdio.h>

struct ftrace_trace {
    struct pb_writer w;
    size_t packet, bundle;
    struct storage st;
    struct importer *im;
    int result; /* of importer_finish() */
    struct error err;
};

enum {
    PACKET = 1,
    PACKET_BUNDLE = 1,
    PACKET_SEQUENCE = 10,
    PACKET_FLAGS = 13,
    PACKET_INTERNED = 12,
    PACKET_STATS = 34
};

static inline void trace_packet(struct ftrace_trace *t)
{
    t->packet = pb_begin(&t->w, PACKET);
    pb_put_varint(&t->w, PACKET_SEQUENCE, 1);
}

static inline void trace_bundle(struct ftrace_trace *t, uint32_t cpu)
{
    trace_packet(t);
    t->bundle = pb_begin(&t->w, PACKET_BUNDLE);
    pb_put_varint(&t->w, 1, cpu);
}

static inline void trace_bundle_end(struct ftrace_trace *t)
{
    pb_end(&t->w, t->bundle);
    pb_end(&t->w, t->packet);
}

/* One event; `payload` is taken and emptied. */
static inline void trace_event(struct ftrace_trace *t, uint64_t ts, uint32_t pid, uint32_t id,
                               struct pb_writer *payload)
{
    size_t e = pb_begin(&t->w, 2);
    pb_put_varint(&t->w, FTRACE_EVENT_TIMESTAMP, ts);
    pb_put_varint(&t->w, FTRACE_EVENT_PID, pid);
    pb_put_bytes(&t->w, id, payload->p, payload->n);
    pb_end(&t->w, e);
    pb_writer_clear(payload);
}

static inline void trace_switch(struct ftrace_trace *t, uint64_t ts, const char *prev, int32_t prev_pid, int64_t state,
                                const char *next, int32_t next_pid)
{
    struct pb_writer p = {0};
    pb_put_str(&p, 1, prev);
    pb_put_varint(&p, 2, (uint32_t)prev_pid);
    pb_put_varint(&p, 3, 120);
    pb_put_i64(&p, 4, state);
    pb_put_str(&p, 5, next);
    pb_put_varint(&p, 6, (uint32_t)next_pid);
    pb_put_varint(&p, 7, 110);
    trace_event(t, ts, (uint32_t)prev_pid, FTRACE_EVENT_SCHED_SWITCH, &p);
    pb_writer_free(&p);
}

static inline void trace_print(struct ftrace_trace *t, uint64_t ts, uint32_t pid, const char *text)
{
    struct pb_writer p = {0};
    pb_put_str(&p, 2, text);
    trace_event(t, ts, pid, FTRACE_EVENT_PRINT, &p);
    pb_writer_free(&p);
}

static inline void trace_import_with(struct ftrace_trace *t, const struct import_options *options)
{
    ck_assert_int_eq(storage_init(&t->st), 0);
    ck_assert_int_eq(importer_open(&t->im, &t->st, options, &t->err), 0);
    ck_assert(!t->w.failed);
    t->result = importer_feed(t->im, t->w.p, t->w.n, &t->err);
    int finished = importer_finish(t->im, &t->err);
    if (t->result == 0)
        t->result = finished;
}

static inline void trace_import(struct ftrace_trace *t)
{
    trace_import_with(t, &(struct import_options){0});
}

static inline void trace_free(struct ftrace_trace *t)
{
    importer_close(t->im);
    if (t->im)
        storage_free(&t->st);
    pb_writer_free(&t->w);
}

#define ROWS(trace, table)                   ((trace)->st.t[T_##table].n_rows)
#define CELL(trace, table, column, row)      ROW_GET(&(trace)->st, table, column, (row))
#define TEXT_CELL(trace, table, column, row) strpool_cstr(&(trace)->st.strings, (strid)CELL(trace, table, column, row))
#define TRACE_STAT(trace, name)              stats_get(&(trace)->st.stats, 0, STAT_##name)

/* "key=value key=value …" of an arg set. */
static inline const char *trace_args(struct ftrace_trace *t, int64_t set)
{
    static char text[4096];
    struct arg_list l = {0};
    size_t n = 0;
    text[0] = 0;
    args_values(&t->st.args, argset_of_cell(set), &l);
    for (size_t i = 0; i < l.n && n < sizeof text; i++) {
        const char *key = strpool_cstr(&t->st.strings, l.p[i].key);
        const char *space = i ? " " : "";
        if (l.p[i].type == ARG_STRING)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%s", space, key,
                                  l.p[i].word ? strpool_cstr(&t->st.strings, (strid)l.p[i].word) : "NULL");
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%lld", space, key, (long long)l.p[i].word);
    }
    arg_list_free(&l);
    return text;
}

#endif
