/* A trace of track events in memory, written packet by packet, and its import; shared by test_track_event*.c. */
#ifndef MERIDIAN_TEST_TRACK_EVENT_FIXTURE_H
#define MERIDIAN_TEST_TRACK_EVENT_FIXTURE_H

#include "importer/importer.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <stdio.h>

static struct storage st;
static struct importer *im;
static struct pb_writer trace;
static size_t packet_mark;

static inline void import_begin(void)
{
    struct import_options options = {0};
    struct error err;
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, &options, &err), 0);
}

static inline void import_end(void)
{
    importer_close(im);
    storage_free(&st);
}

static inline void setup(void)
{
    trace = (struct pb_writer){0};
    import_begin();
}

static inline void teardown(void)
{
    import_end();
    pb_writer_free(&trace);
}

/* Imports what was written. */
static inline void load(void)
{
    struct error err;
    ck_assert(!trace.failed);
    ck_assert_msg(importer_feed(im, trace.p, trace.n, &err) == 0, "%s", err.text);
    ck_assert_msg(importer_finish(im, &err) == 0, "%s", err.text);
}

#define SLICE(column, row) ROW_GET(&st, slice, column, row)
#define STAT(name)         stats_get(&st.stats, 0, STAT_##name)
#define ROWS(table)        (st.t[T_##table].n_rows)

static inline const char *text(int64_t id)
{
    return id ? strpool_cstr(&st.strings, (strid)id) : "(null)";
}

static inline void packet_begin(int64_t ts, uint32_t sequence, unsigned flags)
{
    packet_mark = pb_begin(&trace, 1);
    if (ts >= 0)
        pb_put_i64(&trace, 8, ts);
    pb_put_varint(&trace, 10, sequence);
    if (flags)
        pb_put_varint(&trace, 13, flags);
}

static inline void packet_end(void)
{
    pb_end(&trace, packet_mark);
}

static inline size_t in(uint32_t field)
{
    return pb_begin(&trace, field);
}

static inline void out(size_t mark)
{
    pb_end(&trace, mark);
}

/* A TrackDescriptor with a name and a parent; `more` (may be NULL) adds fields. */
static inline void describe(uint64_t uuid, uint64_t parent, const char *name, void (*more)(void))
{
    packet_begin(0, 1, 0);
    size_t d = in(60);
    pb_put_varint(&trace, 1, uuid);
    if (parent)
        pb_put_varint(&trace, 5, parent);
    if (name)
        pb_put_str(&trace, 2, name);
    if (more)
        more();
    out(d);
    packet_end();
}

/* A TrackEvent of a type on a track; its packet stays open for more fields until event_end(). */
static size_t event_mark;

static inline void event(int64_t ts, unsigned type, uint64_t uuid, const char *name)
{
    packet_begin(ts, 1, 0);
    event_mark = in(11);
    if (type)
        pb_put_varint(&trace, 9, type);
    if (uuid)
        pb_put_varint(&trace, 11, uuid);
    if (name)
        pb_put_str(&trace, 23, name);
}

static inline void event_end(void)
{
    out(event_mark);
    packet_end();
}

static inline void simple_event(int64_t ts, unsigned type, uint64_t uuid, const char *name)
{
    event(ts, type, uuid, name);
    event_end();
}

enum { BEGIN = 1, END, INSTANT, COUNTER, STATE };

/* The value of an arg as text; NULL when the set has no such key. */
static inline const char *arg_text(int64_t set, const char *key)
{
    static char buffer[2048];
    struct arg_list list = {0};
    const char *found = NULL;
    args_values(&st.args, argset_of_cell(set), &list);
    for (size_t i = 0; i < list.n && !found; i++) {
        const struct arg *a = &list.p[i];
        if (strcmp(text(a->key), key) != 0)
            continue;
        if (a->type == ARG_STRING || a->type == ARG_JSON)
            snprintf(buffer, sizeof buffer, "%s", text(a->word));
        else if (a->type == ARG_REAL)
            snprintf(buffer, sizeof buffer, "%g", column_f64(a->word));
        else if (a->type == ARG_UINT)
            snprintf(buffer, sizeof buffer, "%llu", (unsigned long long)a->word);
        else
            snprintf(buffer, sizeof buffer, "%lld", (long long)a->word);
        found = buffer;
    }
    arg_list_free(&list);
    return found;
}
#endif
