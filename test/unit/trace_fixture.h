/* A trace written packet by packet in memory, and its import, for tests that look at the rows it makes. */
#ifndef MERIDIAN_TEST_TRACE_FIXTURE_H
#define MERIDIAN_TEST_TRACE_FIXTURE_H

#include "importer/importer.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <stdio.h>

struct trace_fixture {
    struct storage st;
    struct importer *im;
    struct pb_writer w;
    size_t packet;
};

static inline void trace_fixture_open_with(struct trace_fixture *f, const struct import_options *options)
{
    struct error err;
    *f = (struct trace_fixture){0};
    ck_assert_int_eq(storage_init(&f->st), 0);
    ck_assert_int_eq(importer_open(&f->im, &f->st, options, &err), 0);
}

static inline void trace_fixture_open(struct trace_fixture *f)
{
    struct import_options options = {0};
    trace_fixture_open_with(f, &options);
}

static inline void trace_fixture_close(struct trace_fixture *f)
{
    importer_close(f->im);
    storage_free(&f->st);
    pb_writer_free(&f->w);
}

/* Imports what was written. */
static inline void trace_fixture_load(struct trace_fixture *f)
{
    struct error err;
    ck_assert(!f->w.failed);
    ck_assert_msg(importer_feed(f->im, f->w.p, f->w.n, &err) == 0, "%s", err.text);
    ck_assert_msg(importer_finish(f->im, &err) == 0, "%s", err.text);
}

/* A packet of sequence 1; fields go between the two. */
static inline void packet_begin(struct trace_fixture *f, int64_t ts)
{
    f->packet = pb_begin(&f->w, 1);
    pb_put_i64(&f->w, 8, ts);
    pb_put_varint(&f->w, 10, 1);
}
static inline void packet_end(struct trace_fixture *f)
{
    pb_end(&f->w, f->packet);
}

static inline const char *fixture_text(const struct trace_fixture *f, int64_t id)
{
    return id ? strpool_cstr(&f->st.strings, (strid)id) : "(null)";
}

/* A set of args as "key=value key=value"; valid until the next call. */
static inline const char *fixture_args(struct trace_fixture *f, argset set)
{
    static char text[1024];
    struct arg_list list = {0};
    size_t n = 0;
    text[0] = 0;
    args_values(&f->st.args, set, &list);
    for (size_t i = 0; i < list.n && n < sizeof text; i++) {
        const struct arg *a = &list.p[i];
        const char *key = fixture_text(f, a->key), *between = i ? " " : "";
        if (a->type == ARG_STRING)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%s", between, key, fixture_text(f, a->word));
        else if (a->type == ARG_REAL)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%g", between, key, column_f64(a->word));
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%lld", between, key, (long long)a->word);
    }
    arg_list_free(&list);
    return text;
}

/* The last value of the counter track of a name; NAN when there is none. */
static inline double last_value(struct trace_fixture *f, const char *track_name)
{
    double value = __builtin_nan("");
    for (uint32_t i = 0; i < f->st.t[T_counter].n_rows; i++) {
        uint32_t track = (uint32_t)ROW_GET(&f->st, counter, track_id, i);
        if (strcmp(fixture_text(f, ROW_GET(&f->st, track, name, track)), track_name) == 0)
            value = column_f64(ROW_GET(&f->st, counter, value, i));
    }
    return value;
}

#endif
