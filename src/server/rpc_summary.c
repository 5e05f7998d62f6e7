/* Summaries for clients. Their queries can be interrupted as others can: by the client's leaving. */
#include "server/rpc_summary.h"

#include "base/vec.h"
#include "rpc/wire.h"
#include "server/client_session.h"
#include "server/worker.h"
#include "wire/pb_cursor.h"

#include <stdio.h>

static struct slice field_of(struct slice message, uint32_t id)
{
    struct pb_field f;
    return pb_find(message, id, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
}

static struct tp *loaded(const struct worker *w)
{
    return w->trace->finished ? w->trace->tp : NULL;
}

/* ---- metrics: there are none ---- */

void rpc_metric(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    (void)w, (void)s;
    char text[512];
    struct slice name = field_of(args, METRIC_ARGS_NAME);
    struct pb_field f;
    uint32_t format = pb_find(args, METRIC_ARGS_FORMAT, &f) ? pb_u32(&f) : 0;
    static const struct {
        uint32_t field;
        const char *empty;
    } results[] = {{METRIC_RESULT_BINARY, ""}, {METRIC_RESULT_TEXT, ""}, {METRIC_RESULT_JSON, "{}"}};
    if (!name.len && format < sizeof results / sizeof *results) { /* all that was asked for */
        pb_put_str(out, results[format].field, results[format].empty);
        return;
    }
    snprintf(text, sizeof text,
             "Unknown metric '%.*s': there are no metrics of this kind here; use a trace summary, or SQL and the "
             "modules of the standard library",
             name.len < 128 ? (int)name.len : 128, name.len ? (const char *)name.p : "");
    pb_put_text(out, METRIC_RESULT_ERROR, slice_str(text));
}

void rpc_metric_descriptors(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    (void)w, (void)s, (void)args, (void)out; /* an empty DescriptorSet */
}

/* ---- summaries ---- */

struct summary_request {
    struct tp_summary what;
    VEC(struct tp_spec)
    specs;
    VEC(const char *)
    metrics;
    char *metadata_query;
    const char *why; /* it cannot be read; NULL: it can */
};

/* Two bytes of a request can be one of these, which takes a hundred in memory. */
enum { MAX_SPECS = 1000, MAX_METRICS = 100000 };

static char *copy_text(struct slice s)
{
    return mem_strndup((const char *)s.p, s.len);
}

static const char *add_metric(struct summary_request *r, struct slice id)
{
    char *copy = r->metrics.n < MAX_METRICS ? copy_text(id) : NULL;
    if (r->metrics.n >= MAX_METRICS)
        return "more than 100000 metrics";
    if (copy && vec_push(&r->metrics, copy))
        return NULL;
    mem_free(copy);
    return "out of memory";
}

static const char *add_spec(struct summary_request *r, struct slice bytes, bool text)
{
    struct tp_spec spec = {.bytes = bytes.p, .len = bytes.len, .format = text ? TP_SPEC_TEXT : TP_SPEC_BINARY};
    if (r->specs.n >= MAX_SPECS)
        return "more than 1000 specs";
    return vec_push(&r->specs, spec) ? NULL : "out of memory";
}

static void read_computation(struct summary_request *r, struct slice args)
{
    struct pb_cursor c = pb_cursor(args);
    struct pb_field f;
    while (!r->why && pb_next(&c, &f)) {
        if (f.id == COMPUTATION_ALL) {
            r->what.all_metrics = pb_bool(&f);
        } else if (f.id == COMPUTATION_METRIC) {
            r->why = add_metric(r, pb_bytes(&f));
        } else if (f.id == COMPUTATION_METADATA_QUERY) {
            mem_free(r->metadata_query);
            r->metadata_query = copy_text(pb_bytes(&f));
            r->why = r->metadata_query ? NULL : "out of memory";
        }
    }
}

static void read_request(struct summary_request *r, struct slice args)
{
    struct pb_cursor c = pb_cursor(args);
    struct pb_field f;
    *r = (struct summary_request){0};
    while (!r->why && pb_next(&c, &f)) {
        if (f.id == SUMMARY_ARGS_SPEC || f.id == SUMMARY_ARGS_TEXT_SPEC)
            r->why = add_spec(r, pb_bytes(&f), f.id == SUMMARY_ARGS_TEXT_SPEC);
        else if (f.id == SUMMARY_ARGS_COMPUTATION)
            read_computation(r, pb_bytes(&f));
        else if (f.id == SUMMARY_ARGS_FORMAT)
            r->what.text = pb_u64(&f) == SUMMARY_FORMAT_TEXT;
    }
    r->what.specs = r->specs.p;
    r->what.n_specs = r->specs.n;
    r->what.metrics = r->metrics.p;
    r->what.n_metrics = r->metrics.n;
    r->what.metadata_query = r->metadata_query && r->metadata_query[0] ? r->metadata_query : NULL;
}

static void free_request(struct summary_request *r)
{
    for (size_t i = 0; i < r->metrics.n; i++)
        mem_free((char *)r->metrics.p[i]);
    vec_free(&r->metrics);
    vec_free(&r->specs);
    mem_free(r->metadata_query);
}

static void summarize(struct worker *w, const struct summary_request *r, struct pb_writer *out)
{
    char text[128];
    void *bytes = NULL;
    size_t len = 0;
    if (r->why) {
        pb_put_text(out, SUMMARY_RESULT_ERROR, slice_str(r->why));
    } else if (!loaded(w)) {
        pb_put_text(out, SUMMARY_RESULT_ERROR, slice_str("no trace is loaded"));
    } else if (tp_summarize(loaded(w), &r->what, &bytes, &len) < 0) {
        pb_put_text(out, SUMMARY_RESULT_ERROR, slice_str(trace_error(w->trace)));
    } else if (len > RPC_MAX_MESSAGE - (64 << 10)) {
        snprintf(text, sizeof text, "the summary is too big (%zu bytes)", len);
        pb_put_text(out, SUMMARY_RESULT_ERROR, slice_str(text));
    } else {
        pb_put_bytes(out, r->what.text ? SUMMARY_RESULT_TEXT : SUMMARY_RESULT_BINARY, bytes, len);
    }
    tp_free(bytes);
}

void rpc_summary(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    struct summary_request r;
    const char *why = rpc_begin_asking(w, s);
    if (why) {
        pb_put_text(out, SUMMARY_RESULT_ERROR, slice_str(why));
        return;
    }
    read_request(&r, args);
    summarize(w, &r, out);
    free_request(&r);
    worker_end_query(w);
}

/* ---- summarizers ---- */

/* Whose summarizers a request means. */
static const void *owner_of(const struct session *s)
{
    return s->stream ? s : NULL;
}

/* Begins a request about a summarizer: NULL, and the error is written; or worker_end_query() is to follow. */
static struct summarizer_place *begin(struct worker *w, struct session *s, struct slice args, struct pb_writer *out,
                                      uint32_t error_field)
{
    struct slice id = field_of(args, SUMMARIZER_ID);
    char text[256];
    const char *why = rpc_begin_asking(w, s);
    struct summarizer_place *p = why ? NULL : summarizers_find(&w->trace->summarizers, owner_of(s), id);
    if (p)
        return p;
    if (!why) {
        worker_end_query(w);
        snprintf(text, sizeof text, "there is no summarizer '%.*s'", id.len < 128 ? (int)id.len : 128,
                 id.len ? (const char *)id.p : "");
    }
    pb_put_text(out, error_field, slice_str(why ? why : text));
    return NULL;
}

void rpc_summarizer_create(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    const char *why = rpc_begin_asking(w, s);
    if (why) {
        pb_put_text(out, CREATE_SUMMARIZER_ERROR, slice_str(why));
        return;
    }
    struct summarizer_place *p =
        summarizers_make(&w->trace->summarizers, loaded(w), owner_of(s), field_of(args, SUMMARIZER_ID), &why);
    if (p)
        pb_put_str(out, SUMMARIZER_ID, p->id);
    else
        pb_put_text(out, CREATE_SUMMARIZER_ERROR, slice_str(why));
    worker_end_query(w);
}

static void put_changes(struct pb_writer *out, const struct tp_query_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t mark = pb_begin(out, UPDATED_QUERY);
        pb_put_str(out, SYNC_QUERY_ID, changes[i].id);
        pb_put_varint(out, SYNC_UPDATED, changes[i].updated);
        pb_put_varint(out, SYNC_DROPPED, changes[i].dropped);
        pb_end(out, mark);
    }
}

void rpc_summarizer_update(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    const struct tp_query_change *changes;
    size_t n;
    struct slice bytes = field_of(args, UPDATE_SUMMARIZER_SPEC);
    const struct tp_spec spec = {.bytes = bytes.p, .len = bytes.len, .format = TP_SPEC_BINARY};
    struct summarizer_place *p = begin(w, s, args, out, UPDATED_ERROR);
    if (!p)
        return;
    if (tp_summarizer_update(p->s, &spec, &changes, &n) < 0)
        pb_put_text(out, UPDATED_ERROR, slice_str(trace_error(w->trace)));
    else
        put_changes(out, changes, n);
    worker_end_query(w);
}

static void put_query_table(struct pb_writer *out, const struct tp_query_table *t)
{
    pb_put_varint(out, SUMMARIZED_EXISTS, t->exists);
    if (!t->exists)
        return;
    pb_put_str(out, SUMMARIZED_TABLE, t->table);
    pb_put_i64(out, SUMMARIZED_ROWS, t->n_rows);
    for (size_t i = 0; i < t->n_columns; i++)
        pb_put_text(out, SUMMARIZED_COLUMN, slice_str(t->columns[i]));
    pb_put_double(out, SUMMARIZED_DURATION_MS, t->duration_ms);
    pb_put_text(out, SUMMARIZED_SQL, slice_str(t->sql));
    pb_put_text(out, SUMMARIZED_TEXT, slice_str(t->text));
    pb_put_text(out, SUMMARIZED_STANDALONE_SQL, slice_str(t->standalone_sql));
}

void rpc_summarizer_query(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    struct tp_query_table table;
    struct summarizer_place *p = begin(w, s, args, out, SUMMARIZED_ERROR);
    if (!p)
        return;
    char *id = copy_text(field_of(args, QUERY_SUMMARIZER_QUERY));
    if (!id)
        pb_put_text(out, SUMMARIZED_ERROR, slice_str("out of memory"));
    else if (tp_summarizer_query(p->s, id, &table) < 0)
        pb_put_text(out, SUMMARIZED_ERROR, slice_str(trace_error(w->trace)));
    else
        put_query_table(out, &table);
    worker_end_query(w);
    mem_free(id);
}

void rpc_summarizer_destroy(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    struct summarizer_place *p = begin(w, s, args, out, DESTROY_SUMMARIZER_ERROR);
    if (!p)
        return;
    summarizers_remove(p);
    worker_end_query(w);
}
