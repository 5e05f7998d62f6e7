/* Requests of the protocol, answered from the table of methods. */
#include "server/rpc.h"

#include "base/vec.h"
#include "rpc/http.h"
#include "rpc/wire.h"
#include "server/client_session.h"
#include "server/recording_rows.h"
#include "server/rpc_summary.h"
#include "server/worker.h"
#include "wire/pb_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_EXPORTS = 8 }; /* at once: each is a file as large as the tables */

/* The result of a field, or of an empty message when it is not there. */
static struct slice field_of(struct slice message, uint32_t id)
{
    struct pb_field f;
    return id && pb_find(message, id, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
}

/* ---- methods that answer with one message ---- */

void rpc_append(struct worker *w, struct session *s, struct slice data, struct pb_writer *out)
{
    if (w->trace->finished)
        worker_tables_gone(w, s, TABLES_ALL, "another client has loaded another trace: connect again to see it");
    int rc = trace_append(w->trace, data.p, data.len);
    pb_put_varint(out, APPEND_RESULT_BYTES, w->trace->tp ? tp_loaded_bytes(w->trace->tp) : 0);
    if (rc < 0)
        pb_put_text(out, APPEND_RESULT_ERROR, slice_str(trace_error(w->trace)));
}

void rpc_finalize(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    (void)s, (void)args;
    if (trace_finish(w->trace) < 0)
        pb_put_text(out, FINALIZE_RESULT_ERROR, slice_str(trace_error(w->trace)));
}

/* A page that begins must find the initial tables, and others that are open must keep theirs: the first page uses what
 * scripts use, too, further ones get tables of their own. */
static int restore(struct worker *w, struct session *s)
{
    struct trace *t = w->trace;
    if (!t->tp || !t->finished)
        return 0;
    s->asked = true; /* it will, and counts on these tables */
    if (s->page && !s->view && worker_has_other_pages(w, s)) {
        s->tables_gone_error = NULL;
        summarizers_leave(&t->summarizers, s); /* they are on the tables that it leaves */
        return trace_open_view(t, &s->view);
    }
    if (!s->view)
        worker_tables_gone(w, s, TABLES_SHARED,
                           "another client has reset the tables: connect again (or reset them here)");
    return tp_restore_initial_tables(t->tp);
}

void rpc_restore(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    (void)args, (void)out;
    restore(w, s); /* there is no result to tell a failure in; the tables stay as they were */
}

static void reset(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    (void)out;
    struct tp_config config = w->trace->config;
    struct pb_cursor c = pb_cursor(args);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == RESET_DROP_TRACK_EVENTS)
            config.crop_track_events = pb_bool(&f);
        else if (f.id == RESET_FTRACE_IN_RAW)
            config.no_ftrace_raw = !pb_bool(&f);
        else if (f.id == RESET_SORTING_MODE)
            config.full_sort = pb_bool(&f);
    }
    worker_tables_gone(w, s, TABLES_ALL, "another client has removed the trace: connect again to see what is there");
    trace_reset(w->trace, &config);
}

static void status(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    (void)s, (void)args;
    trace_put_status(w->trace, out);
}

void rpc_metatrace_start(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    (void)s, (void)out;
    struct pb_field f;
    unsigned categories = pb_find(args, METATRACE_ARGS_CATEGORIES, &f) ? pb_u32(&f) & TP_META_ALL : TP_META_ALL;
    if (w->trace->tp)
        tp_metatrace_start(w->trace->tp, categories ? categories : TP_META_ALL, 0);
}

void rpc_metatrace_stop(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    (void)s, (void)args;
    void *bytes = NULL;
    size_t len = 0;
    if (!w->trace->tp || tp_metatrace_stop(w->trace->tp, &bytes, &len) < 0)
        pb_put_text(out, METATRACE_RESULT_ERROR, slice_str(trace_error(w->trace)));
    else
        pb_put_bytes(out, METATRACE_RESULT_TRACE, bytes, len);
    tp_free(bytes);
}

static char *copy_text(struct slice s)
{
    return mem_strndup((const char *)s.p, s.len);
}

static void register_package(struct worker *w, struct session *s, struct slice args, struct pb_writer *out)
{
    (void)s;
    VEC(struct tp_module)
    modules = {0};
    bool replace = false, whole = true;
    char *package = copy_text(field_of(args, PACKAGE_NAME));
    struct pb_cursor c = pb_cursor(args);
    struct pb_field f;
    while (pb_next(&c, &f) && whole) {
        if (f.id == PACKAGE_ALLOW_OVERRIDE)
            replace = pb_bool(&f);
        if (f.id != PACKAGE_MODULE)
            continue;
        struct slice sql = field_of(pb_bytes(&f), MODULE_SQL);
        char *name = copy_text(field_of(pb_bytes(&f), MODULE_NAME));
        whole = name && vec_push(&modules, (struct tp_module){name, sql.p ? (const char *)sql.p : "", sql.len});
        if (!whole)
            mem_free(name);
    }
    int rc = w->trace->tp ? 0 : trace_reset(w->trace, NULL);
    if (!package || !whole)
        pb_put_text(out, PACKAGE_RESULT_ERROR, slice_str("out of memory"));
    else if (rc < 0 || tp_add_sql_modules(w->trace->tp, package, modules.p, modules.n, replace) < 0)
        pb_put_text(out, PACKAGE_RESULT_ERROR, slice_str(trace_error(w->trace)));
    for (size_t i = 0; i < modules.n; i++)
        mem_free((char *)modules.p[i].name);
    vec_free(&modules);
    mem_free(package);
}

/* ---- methods that answer in pieces ---- */

const char *rpc_begin_asking(struct worker *w, struct session *s)
{
    s->asked = true;
    return s->tables_gone_error       ? s->tables_gone_error
           : worker_begin_query(w, s) ? NULL
                                      : "the client has disconnected";
}

/* Around a query of a session: false when it is not to run, and its answer says why. */
static bool begin_asking(struct worker *w, struct session *s)
{
    const char *why = rpc_begin_asking(w, s);
    if (why)
        answer_error(&s->rpc.answer, why);
    return !why;
}

void rpc_begin_query(struct worker *w, struct session *s, struct slice args, enum answer_kind kind)
{
    struct answer *a = &s->rpc.answer;
    s->rpc.active = kind;
    if (!begin_asking(w, s))
        return;
    answer_query(a, w->trace->finished ? w->trace->tp : NULL, field_of(args, QUERY_ARGS_SQL));
    worker_end_query(w);
}

static void begin_query(struct worker *w, struct session *s, struct slice args)
{
    rpc_begin_query(w, s, args, ANSWER_RPC_QUERY);
}

static void begin_statement(struct worker *w, struct session *s, struct slice args)
{
    struct answer *a = &s->rpc.answer;
    struct pb_field f;
    s->rpc.active = ANSWER_RPC_STATEMENT;
    s->rpc.statement_executed = false;
    s->rpc.statement_tail = pb_find(args, STATEMENT_ARGS_OFFSET, &f) ? pb_u32(&f) : 0;
    if (!begin_asking(w, s))
        return;
    answer_statement(a, w->trace->finished ? w->trace->tp : NULL, field_of(args, STATEMENT_ARGS_SQL),
                     &s->rpc.statement_tail, &s->rpc.statement_executed);
    worker_end_query(w);
}

/* Exports into a file of its own that has no name any more. */
static int export_to_file(struct tp *tp, char *error, size_t room)
{
    const char *dir = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/meridian-export-XXXXXX", dir && dir[0] ? dir : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) {
        snprintf(error, room, "%s: %s", path, strerror(errno));
        return -1;
    }
    close(fd); /* another file takes its place */
    fd = -1;
    if (tp_export_sqlite(tp, path) < 0)
        snprintf(error, room, "%s", tp_error(tp));
    else if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) < 0)
        snprintf(error, room, "%s: %s", path, strerror(errno));
    unlink(path);
    return fd;
}

int rpc_export_file(struct worker *w, struct session *s, struct slice args, char *error, size_t room)
{
    struct pb_field f;
    uint32_t format = pb_find(args, EXPORT_ARGS_FORMAT, &f) ? pb_u32(&f) : 0;
    if (format != EXPORT_SQLITE) {
        snprintf(error, room, "only the export format SQLITE is available");
        return -1;
    }
    if (s->tables_gone_error || !w->trace->tp || !w->trace->finished) {
        snprintf(error, room, "%s", s->tables_gone_error ? s->tables_gone_error : "no trace is loaded");
        return -1;
    }
    if (w->n_exports >= MAX_EXPORTS) {
        snprintf(error, room, "%d clients are reading exports: ask again when one of them is done", MAX_EXPORTS);
        return -1;
    }
    if (!worker_begin_query(w, s)) {
        snprintf(error, room, "the client has disconnected");
        return -1;
    }
    int fd = export_to_file(w->trace->tp, error, room);
    if (fd < 0 && atomic_load(&w->overdue))
        snprintf(error, room, "interrupted: other clients were waiting for this export");
    worker_end_query(w);
    w->n_exports += fd >= 0;
    return fd;
}

/* ---- messages ---- */

/* Opens a message of the stream: its sequence number and the method that it answers. */
static size_t begin_message(struct session *s, struct pb_writer *out, uint32_t field, uint32_t method)
{
    size_t mark = pb_begin(out, STREAM_MSG);
    pb_put_i64(out, RPC_SEQ, s->rpc.next_reply_seq++);
    if (field)
        pb_put_varint(out, field, method);
    return mark;
}

static void send_message(struct session *s, struct pb_writer *out)
{
    if (out->failed) { /* a message that is missing would be taken for another's answer */
        pb_writer_free(out);
        session_reply(s, REPLY_PART);
        return;
    }
    session_reply_bytes(s, out);
}

static void fatal(struct session *s, const char *text)
{
    struct pb_writer out = {0};
    size_t mark = begin_message(s, &out, 0, 0);
    pb_put_text(&out, RPC_FATAL_ERROR, slice_str(text));
    pb_end(&out, mark);
    send_message(s, &out);
    session_reply(s, REPLY_PART);
}

void rpc_broken(struct session *s)
{
    fatal(s, "RPC framing error");
}

static void begin_export(struct worker *w, struct session *s, struct slice args)
{
    char error[512];
    s->rpc.file = rpc_export_file(w, s, args, error, sizeof error);
    if (s->rpc.file >= 0) {
        s->rpc.active = ANSWER_RPC_FILE;
        return;
    }
    struct pb_writer out = {0};
    size_t mark = begin_message(s, &out, RPC_RESPONSE, RPC_EXPORT);
    size_t result = pb_begin(&out, RPC_EXPORT_RESULT);
    pb_put_text(&out, EXPORT_RESULT_ERROR, slice_str(error));
    pb_end(&out, result);
    pb_end(&out, mark);
    send_message(s, &out);
}

/* Its answer has no place for an error, and whoever took the old tables for new ones would get wrong answers. */
static void begin_restore(struct worker *w, struct session *s, struct slice args)
{
    (void)args;
    const struct trace *t = w->trace;
    char text[96];
    bool full = t->n_views >= t->max_views;
    if (restore(w, s) < 0) {
        if (full)
            snprintf(text, sizeof text, "%zu pages have tables of their own: close one of them", t->n_views);
        fatal(s, full ? text : trace_error(t));
        return;
    }
    struct pb_writer out = {0};
    pb_end(&out, begin_message(s, &out, RPC_RESPONSE, RPC_RESTORE_INITIAL_TABLES));
    send_message(s, &out);
}

static const struct method {
    enum rpc_method number;
    uint32_t args;   /* field of the arguments; 0: none */
    uint32_t result; /* field of the result; 0: none */
    void (*call)(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
    void (*begin)(struct worker *w, struct session *s, struct slice args); /* instead: answers in pieces */
} methods[] = {
    {RPC_APPEND_TRACE_DATA, RPC_APPEND_DATA, RPC_APPEND_RESULT, rpc_append, NULL},
    {RPC_FINALIZE_TRACE_DATA, 0, RPC_FINALIZE_RESULT, rpc_finalize, NULL},
    {RPC_QUERY_STREAMING, RPC_QUERY_ARGS, RPC_QUERY_RESULT, NULL, begin_query},
    {RPC_COMPUTE_METRIC, RPC_METRIC_ARGS, RPC_METRIC_RESULT, rpc_metric, NULL},
    {RPC_GET_METRIC_DESCRIPTORS, 0, RPC_DESCRIPTORS_RESULT, rpc_metric_descriptors, NULL},
    {RPC_RESTORE_INITIAL_TABLES, 0, 0, NULL, begin_restore},
    {RPC_ENABLE_METATRACE, RPC_METATRACE_ARGS, 0, rpc_metatrace_start, NULL},
    {RPC_DISABLE_AND_READ_METATRACE, 0, RPC_METATRACE_RESULT, rpc_metatrace_stop, NULL},
    {RPC_GET_STATUS, 0, RPC_STATUS_RESULT, status, NULL},
    {RPC_RESET_TRACE_PROCESSOR, RPC_RESET_ARGS, 0, reset, NULL},
    {RPC_REGISTER_SQL_PACKAGE, RPC_PACKAGE_ARGS, RPC_PACKAGE_RESULT, register_package, NULL},
    {RPC_SUMMARIZE_TRACE, RPC_SUMMARY_ARGS, RPC_SUMMARY_RESULT, rpc_summary, NULL},
    {RPC_CREATE_SUMMARIZER, RPC_CREATE_SUMMARIZER_ARGS, RPC_CREATE_SUMMARIZER_RESULT, rpc_summarizer_create, NULL},
    {RPC_UPDATE_SUMMARIZER_SPEC, RPC_UPDATE_SUMMARIZER_ARGS, RPC_UPDATE_SUMMARIZER_RESULT, rpc_summarizer_update, NULL},
    {RPC_QUERY_SUMMARIZER, RPC_QUERY_SUMMARIZER_ARGS, RPC_QUERY_SUMMARIZER_RESULT, rpc_summarizer_query, NULL},
    {RPC_DESTROY_SUMMARIZER, RPC_DESTROY_SUMMARIZER_ARGS, RPC_DESTROY_SUMMARIZER_RESULT, rpc_summarizer_destroy, NULL},
    {RPC_STATEMENT_STREAMING, RPC_STATEMENT_ARGS, RPC_STATEMENT_RESULT, NULL, begin_statement},
    {RPC_EXPORT, RPC_EXPORT_ARGS, RPC_EXPORT_RESULT, NULL, begin_export},
};

static const struct method *find_method(uint64_t number)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].number == number)
            return &methods[i];
    return NULL;
}

static void answer_call(struct worker *w, struct session *s, const struct method *m, struct slice args)
{
    struct pb_writer out = {0};
    size_t mark = begin_message(s, &out, RPC_RESPONSE, m->number);
    size_t result = m->result ? pb_begin(&out, m->result) : 0;
    m->call(w, s, args, &out);
    if (m->result)
        pb_end(&out, result);
    pb_end(&out, mark);
    send_message(s, &out);
}

static void answer_unknown(struct session *s, uint32_t number)
{
    struct pb_writer out = {0};
    size_t mark = begin_message(s, &out, RPC_RESPONSE, number);
    pb_put_varint(&out, RPC_INVALID_REQUEST, number);
    pb_end(&out, mark);
    send_message(s, &out);
}

/* The parts of a request that are the same for all. False: damaged. */
static bool read_request(struct slice message, int64_t *seq, uint32_t *number)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    *seq = 0;
    *number = 0;
    while (pb_next(&c, &f)) {
        if (f.id == RPC_SEQ)
            *seq = pb_i64(&f);
        else if (f.id == RPC_REQUEST)
            *number = pb_u32(&f);
    }
    return !c.bad;
}

void rpc_handle(struct worker *w, struct session *s, struct slice message)
{
    int64_t seq;
    uint32_t number;
    if (!read_request(message, &seq, &number)) {
        rpc_broken(s);
        return;
    }
    int64_t last = s->rpc.last_request_seq;
    if (seq != 0 && last != 0 && seq != last + 1) {
        char text[160];
        snprintf(text, sizeof text, "RPC request out of order. Expected %" PRId64 ", got %" PRId64 " (ERR:rpc_seq)",
                 last + 1, seq);
        fatal(s, text);
        return;
    }
    s->rpc.last_request_seq = seq;
    const struct method *m = find_method(number);
    if (!m)
        answer_unknown(s, number);
    else if (m->begin)
        m->begin(w, s, field_of(message, m->args));
    else
        answer_call(w, s, m, field_of(message, m->args));
}

/* ---- answers on their way ---- */

bool rpc_is_query(const struct rpc *r)
{
    return r->active == ANSWER_RPC_QUERY || r->active == ANSWER_RPC_STATEMENT || r->active == ANSWER_HTTP_QUERY;
}

static void close_export(struct worker *w, struct rpc *r)
{
    if (r->file < 0)
        return;
    close(r->file);
    r->file = -1;
    w->n_exports--;
}

void rpc_free(struct worker *w, struct rpc *r)
{
    answer_free(&r->answer);
    rows_free(w, r->rows);
    close_export(w, r);
}

static void continue_rpc_query(struct worker *w, struct session *s)
{
    struct answer *a = &s->rpc.answer;
    struct pb_writer out = {0};
    bool statement = s->rpc.active == ANSWER_RPC_STATEMENT, first = !a->begun;
    size_t mark = begin_message(s, &out, RPC_RESPONSE, statement ? RPC_STATEMENT_STREAMING : RPC_QUERY_STREAMING);
    size_t outer = statement ? pb_begin(&out, RPC_STATEMENT_RESULT) : 0;
    size_t result = pb_begin(&out, statement ? STATEMENT_RESULT_QUERY : RPC_QUERY_RESULT);
    answer_next(a, &w->pools, &out);
    pb_end(&out, result);
    if (statement && first) {
        pb_put_varint(&out, STATEMENT_RESULT_TAIL, s->rpc.statement_tail);
        pb_put_varint(&out, STATEMENT_RESULT_EXECUTED, s->rpc.statement_executed);
    }
    if (statement)
        pb_end(&out, outer);
    pb_end(&out, mark);
    send_message(s, &out);
}

static void continue_http_query(struct worker *w, struct session *s)
{
    struct pb_writer out = {0};
    answer_next(&s->rpc.answer, &w->pools, &out);
    send_message(s, &out);
    if (s->rpc.answer.done)
        session_reply(s, REPLY_END);
}

static void continue_query(struct worker *w, struct session *s)
{
    if (!worker_begin_query(w, s))
        answer_cut(&s->rpc.answer, "the client has disconnected");
    if (s->rpc.active == ANSWER_HTTP_QUERY)
        continue_http_query(w, s);
    else
        continue_rpc_query(w, s);
    worker_end_query(w);
    if (s->rpc.answer.done) {
        answer_free(&s->rpc.answer);
        s->rpc.active = ANSWER_NONE;
    }
}

static void continue_file(struct worker *w, struct session *s)
{
    uint8_t buf[BATCH_ENOUGH_BYTES];
    bool http = s->rpc.active == ANSWER_HTTP_FILE;
    ssize_t n;
    while ((n = read(s->rpc.file, buf, sizeof buf)) < 0 && errno == EINTR)
        ;
    struct pb_writer out = {0};
    if (http) {
        pb_put_raw(&out, buf, n > 0 ? (size_t)n : 0);
        if (n > 0)
            send_message(s, &out);
    } else {
        size_t mark = begin_message(s, &out, RPC_RESPONSE, RPC_EXPORT);
        size_t result = pb_begin(&out, RPC_EXPORT_RESULT);
        if (n > 0)
            pb_put_bytes(&out, EXPORT_RESULT_DATA, buf, (size_t)n);
        else if (n < 0)
            pb_put_text(&out, EXPORT_RESULT_ERROR, slice_str(strerror(errno)));
        pb_put_varint(&out, EXPORT_RESULT_MORE, n > 0);
        pb_end(&out, result);
        pb_end(&out, mark);
        send_message(s, &out);
    }
    if (n > 0)
        return;
    if (http)
        session_reply(s, n < 0 ? REPLY_PART : REPLY_END);
    close_export(w, &s->rpc);
    s->rpc.active = ANSWER_NONE;
}

void rpc_continue(struct worker *w, struct session *s)
{
    if (s->rpc.active == ANSWER_RPC_FILE || s->rpc.active == ANSWER_HTTP_FILE)
        continue_file(w, s);
    else if (s->rpc.active == ANSWER_ROWS)
        rows_continue(w, s);
    else
        continue_query(w, s);
}
