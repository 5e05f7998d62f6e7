/* Specs in text: the query of id "q", its SQL, its rows over a recording of track events. */
#ifndef MERIDIAN_TEST_STRUCTURED_QUERY_FIXTURE_H
#define MERIDIAN_TEST_STRUCTURED_QUERY_FIXTURE_H

#include "meridian/tp.h"
#include "summary/query/spec.h"
#include "summary/query/structured_query.h"
#include "wire/text_format.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define Q(text) "query { id: 'q' " text " }"
#define TABLE   "table { table_name: 'slice' } "

static struct tp *tp;

static void setup(void)
{
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    ck_assert_msg(tp_load(tp, MERIDIAN_SOURCE_DIR "/test/data/track-events.pftrace") == 0, "%s", tp_error(tp));
    ck_assert_msg(tp_finish(tp) == 0, "%s", tp_error(tp));
}

static void teardown(void)
{
    tp_close(tp);
}

struct compiled {
    trace_summary_spec *spec;
    struct structured_queries *shared;
    struct structured_sql sql;
    struct error err;
    int rc;
};

/* The query of id "q" of a spec in text. */
static void compile(struct compiled *c, const char *text)
{
    *c = (struct compiled){.shared = structured_queries_open()};
    c->rc = spec_parse(slice_str(text), SPEC_TEXT, &c->spec, &c->err);
    for (size_t i = 0; c->rc == 0 && i < c->spec->n_query; i++)
        c->rc = structured_queries_add(c->shared, c->spec->query[i], &c->err);
    if (c->rc == 0) {
        const structured_query *q = structured_queries_find(c->shared, "q");
        ck_assert_ptr_nonnull(q);
        c->rc = structured_query_sql(c->shared, q, &c->sql, &c->err);
    }
}

static void compiled_free(struct compiled *c)
{
    structured_sql_free(&c->sql);
    structured_queries_close(c->shared);
    spec_free(c->spec);
}

/* "column,column;a,b;c,d" with NULL as "-", doubles with what digits they need. */
static inline char *rows_of(const char *sql)
{
    static char out[1 << 16];
    struct tp_result *r;
    int rc = tp_query(tp, sql, &r);
    ck_assert_msg(rc == 0, "%s\n%s", tp_error(tp), sql);
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < tp_columns(r); i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", i ? "," : "", tp_column_name(r, i));
    while ((rc = tp_step(r)) == 1 && n < sizeof out - 4096) {
        n += (size_t)snprintf(out + n, sizeof out - n, ";");
        for (int i = 0; i < tp_columns(r); i++) {
            const char *comma = i ? "," : "";
            switch (tp_column_type(r, i)) {
            case TP_NULL:
                n += (size_t)snprintf(out + n, sizeof out - n, "%s-", comma);
                break;
            case TP_DOUBLE:
                n += (size_t)snprintf(out + n, sizeof out - n, "%s%g", comma, tp_double(r, i));
                break;
            default:
                n += (size_t)snprintf(out + n, sizeof out - n, "%s%.1000s", comma, tp_text(r, i, NULL));
            }
        }
    }
    ck_assert_msg(rc == 0, "%s\n%s", tp_error(tp), sql);
    tp_result_close(r);
    return out;
}

#endif
