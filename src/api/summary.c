/* Summaries and summarizers of the public API: here, or by the server that has the trace. */
#include "summary/run/summary.h"

#include "api/remote.h"
#include "api/tp_internal.h"
#include "rpc/wire.h"
#include "summary/run/summarizer.h"
#include "wire/pb_cursor.h"

struct tp_summarizer {
    struct tp *tp;
    struct tp_view *view; /* in which its tables are */
    struct summarizer *s;
    VEC(struct tp_query_change)
    changes;
};

static int no_memory(struct tp *tp)
{
    return error_set(&tp->err, -MRD_ENOMEM, "out of memory");
}

static int done(struct tp *tp, int rc)
{
    return rc == -MRD_ESQL ? tp_engine_done(tp, rc) : tp_done(tp, rc);
}

static enum spec_format format_of(const struct tp_spec *spec)
{
    switch (spec->format) {
    case TP_SPEC_TEXT:
        return SPEC_TEXT;
    case TP_SPEC_BINARY:
        return SPEC_BINARY;
    default:
        return spec_format_of(spec->name, slice_of(spec->bytes, spec->len));
    }
}

/* ---- summaries ---- */

static int summarize_here(struct tp *tp, const struct tp_summary *what, struct pb_writer *out)
{
    struct arena mem = {0};
    struct summary_source *sources = arena_alloc(&mem, (what->n_specs + 1) * sizeof *sources);
    for (size_t i = 0; sources && i < what->n_specs; i++) {
        const struct tp_spec *spec = &what->specs[i];
        sources[i] = (struct summary_source){
            .name = spec->name ? spec->name : arena_printf(&mem, "spec %zu", i + 1),
            .bytes = slice_of(spec->bytes, spec->len),
            .format = format_of(spec),
        };
    }
    const struct summary_request request = {
        .sources = sources,
        .n_sources = what->n_specs,
        .metric_ids = what->metrics,
        .n_metric_ids = what->n_metrics,
        .all_metrics = what->all_metrics,
        .metadata_query = what->metadata_query,
        .text = what->text,
    };
    int rc = mem.failed ? no_memory(tp) : summary_make(&tp->view->runner, &request, out, &tp->err);
    arena_free(&mem);
    return rc;
}

static void put_request(struct pb_writer *w, const struct tp_summary *what)
{
    size_t args = pb_begin(w, RPC_SUMMARY_ARGS);
    for (size_t i = 0; i < what->n_specs; i++) {
        const struct tp_spec *spec = &what->specs[i];
        pb_put_bytes(w, format_of(spec) == SPEC_TEXT ? SUMMARY_ARGS_TEXT_SPEC : SUMMARY_ARGS_SPEC, spec->bytes,
                     spec->len);
    }
    size_t computation = pb_begin(w, SUMMARY_ARGS_COMPUTATION);
    for (size_t i = 0; i < what->n_metrics && !what->all_metrics; i++)
        pb_put_str(w, COMPUTATION_METRIC, what->metrics[i]);
    if (what->metadata_query)
        pb_put_str(w, COMPUTATION_METADATA_QUERY, what->metadata_query);
    if (what->all_metrics)
        pb_put_varint(w, COMPUTATION_ALL, true);
    pb_end(w, computation);
    pb_put_varint(w, SUMMARY_ARGS_FORMAT, what->text);
    pb_end(w, args);
}

static int summarize_there(struct tp *tp, const struct tp_summary *what, struct pb_writer *out)
{
    struct pb_writer request = {0};
    struct slice result;
    struct pb_field f;
    uint8_t *message = NULL;
    put_request(&request, what);
    int rc = request.failed ? no_memory(tp)
                            : remote_ask(tp->remote, RPC_SUMMARIZE_TRACE, pb_written(&request), RPC_SUMMARY_RESULT,
                                         &message, &result, &tp->err);
    if (rc == 0 && pb_find(result, SUMMARY_RESULT_ERROR, &f) && f.u)
        rc = remote_failed(tp->remote, pb_bytes(&f), &tp->err);
    else if (rc == 0 && pb_find(result, what->text ? SUMMARY_RESULT_TEXT : SUMMARY_RESULT_BINARY, &f))
        pb_put_raw(out, f.p, pb_bytes(&f).len);
    pb_writer_free(&request);
    mem_free(message);
    return rc;
}

int tp_summarize(struct tp *tp, const struct tp_summary *what, void **bytes, size_t *len)
{
    struct pb_writer out = {0};
    *bytes = NULL;
    *len = 0;
    int64_t start = tp_meta_now(tp, TP_META_API);
    tp_done(tp, 0);
    tp_interrupt_clear(tp);
    int rc = tp->remote ? 0 : tp_need_engine(tp);
    if (rc == 0)
        rc = tp->remote ? summarize_there(tp, what, &out) : summarize_here(tp, what, &out);
    if (rc == 0) {
        *len = out.n;
        pb_put_raw(&out, "", 1);
        rc = out.failed ? no_memory(tp) : 0;
    }
    tp_meta_record(tp, TP_META_API, "summarize", start, NULL, NULL, 0);
    if (rc == 0) {
        *bytes = out.p;
        return tp_done(tp, 0);
    }
    *len = 0;
    pb_writer_free(&out);
    return done(tp, rc);
}

/* ---- summarizers ---- */

int tp_summarizer_open(struct tp *tp, struct tp_summarizer **out)
{
    *out = NULL;
    int rc = tp_need_engine(tp);
    struct tp_summarizer *s = rc == 0 ? mem_zalloc(sizeof *s) : NULL;
    if (rc == 0)
        rc = s ? summarizer_open(&tp->view->runner, &s->s) : -MRD_ENOMEM;
    if (rc < 0) {
        mem_free(s);
        return tp_done(tp, rc);
    }
    s->tp = tp;
    s->view = tp->view;
    *out = s;
    return tp_done(tp, 0);
}

static int need_view(struct tp_summarizer *s)
{
    int rc = tp_need_engine(s->tp);
    if (rc == 0 && s->tp->view != s->view)
        rc = error_set(&s->tp->err, -MRD_EINVALID, "the summarizer belongs to another view");
    return rc;
}

void tp_summarizer_close(struct tp_summarizer *s)
{
    if (!s)
        return;
    summarizer_close(s->s);
    vec_free(&s->changes);
    mem_free(s);
}

int tp_summarizer_update(struct tp_summarizer *s, const struct tp_spec *spec, const struct tp_query_change **changes,
                         size_t *n)
{
    const struct query_change *found;
    size_t n_found;
    *changes = NULL;
    *n = 0;
    vec_clear(&s->changes);
    int rc = need_view(s);
    if (rc == 0)
        rc = summarizer_update(s->s, slice_of(spec->bytes, spec->len), format_of(spec), &found, &n_found, &s->tp->err);
    for (size_t i = 0; rc == 0 && i < n_found; i++)
        if (!vec_push(&s->changes, (struct tp_query_change){found[i].id, found[i].updated, found[i].dropped}))
            rc = no_memory(s->tp);
    if (rc == 0) {
        *changes = s->changes.p;
        *n = s->changes.n;
    } else if (spec->name) {
        error_prefix(&s->tp->err, "%s", spec->name);
    }
    return done(s->tp, rc);
}

int tp_summarizer_query(struct tp_summarizer *s, const char *id, struct tp_query_table *out)
{
    struct query_table table;
    *out = (struct tp_query_table){0};
    int64_t start = tp_meta_now(s->tp, TP_META_API);
    int rc = need_view(s);
    tp_interrupt_clear(s->tp);
    if (rc == 0)
        rc = summarizer_query(s->s, id, &table, &s->tp->err);
    tp_meta_record(s->tp, TP_META_API, "query summarizer", start, "query", id, strlen(id));
    if (rc < 0)
        return done(s->tp, rc);
    *out = (struct tp_query_table){
        .exists = table.exists,
        .table = table.table,
        .n_rows = table.n_rows,
        .columns = table.columns,
        .n_columns = table.n_columns,
        .duration_ms = table.duration_ms,
        .sql = table.sql,
        .text = table.text,
        .standalone_sql = table.standalone,
    };
    return tp_done(s->tp, 0);
}
