/* HTTP requests that are not streams of messages: arguments in the body, the result in the answer. */
#include "server/routes.h"

#include "rpc/http.h"
#include "rpc/wire.h"
#include "server/client_session.h"
#include "server/recording_rows.h"
#include "server/rpc_summary.h"
#include "server/worker.h"
#include "wire/pb_cursor.h"

static void notify_eof(struct worker *w, struct session *s, struct slice body, struct pb_writer *out)
{
    struct pb_writer unused = {0}; /* this route has no result */
    (void)out;
    rpc_finalize(w, s, body, &unused);
    pb_writer_free(&unused);
}

static void begin_query(struct worker *w, struct session *s, struct slice body)
{
    session_reply_head(s, 200, TYPE_PROTOBUF, HTTP_CHUNKED);
    rpc_begin_query(w, s, body, ANSWER_HTTP_QUERY);
}

void route_reply_text(struct session *s, int status, const char *text)
{
    struct pb_writer out = {0};
    pb_put_raw(&out, text, strlen(text));
    session_reply_head(s, status, TYPE_TEXT, (int64_t)out.n);
    session_reply_bytes(s, &out);
    session_reply(s, REPLY_END);
}

static void begin_export(struct worker *w, struct session *s, struct slice body)
{
    struct pb_field f;
    char error[512];
    if (!pb_find(body, EXPORT_ARGS_FORMAT, &f)) {
        route_reply_text(s, 400, "ExportArgs.format is missing\n");
        return;
    }
    session_reply_head(s, 200, "application/octet-stream", HTTP_CHUNKED);
    s->rpc.file = rpc_export_file(w, s, body, error, sizeof error);
    if (s->rpc.file >= 0)
        s->rpc.active = ANSWER_HTTP_FILE;
    else
        session_reply(s, REPLY_PART); /* an answer cut short tells the client that it failed */
}

const struct route routes[] = {
    {"/", ROUTE_HELP, "this page", false, false, NULL, NULL},
    {"/status", ROUTE_STATUS, "StatusResult: what is loaded", false, false, NULL, NULL},
    {"/websocket", ROUTE_WEBSOCKET, "a stream of TraceProcessorRpc, both ways", false, false, NULL, NULL},
    {"/rpc", ROUTE_RPC, "the same stream: the requests as body, the answers in chunks", true, false, NULL, NULL},
    {"/parse", ROUTE_CALL, "bytes of a trace -> AppendTraceDataResult", true, false, rpc_append, NULL},
    {"/notify_eof", ROUTE_CALL, "the trace is complete", true, false, notify_eof, NULL},
    {"/restore_initial_tables", ROUTE_CALL, "forget what queries have created", true, false, rpc_restore, NULL},
    {"/query", ROUTE_STREAM, "QueryArgs -> QueryResult, in batches", true, false, NULL, begin_query},
    {"/export", ROUTE_STREAM, "ExportArgs -> a file", true, false, NULL, begin_export},
    {"/recordings", ROUTE_STREAM, "sql=, trace=, path= -> rows of recordings as text (--traces)", true, true, NULL,
     rows_begin},
    {"/compute_metric", ROUTE_CALL, "ComputeMetricArgs -> ComputeMetricResult", true, false, rpc_metric, NULL},
    {"/trace_summary", ROUTE_CALL, "TraceSummaryArgs -> TraceSummaryResult", true, false, rpc_summary, NULL},
    {"/enable_metatrace", ROUTE_CALL, "record what the server does", true, false, rpc_metatrace_start, NULL},
    {"/disable_and_read_metatrace", ROUTE_CALL, "-> DisableAndReadMetatraceResult", true, false, rpc_metatrace_stop,
     NULL},
};
const size_t n_routes = sizeof routes / sizeof *routes;

const struct route *route_find(struct slice path)
{
    for (size_t i = 0; i < n_routes; i++)
        if (slice_eq_str(path, routes[i].path))
            return &routes[i];
    return NULL;
}

void route_run(struct worker *w, struct session *s, const struct route *r, struct slice body)
{
    if (r->kind == ROUTE_STREAM) {
        r->begin(w, s, body);
        return;
    }
    struct pb_writer out = {0};
    r->call(w, s, body, &out);
    if (out.failed) {
        pb_writer_free(&out);
        route_reply_text(s, 500, "out of memory\n");
        return;
    }
    session_reply_head(s, 200, TYPE_PROTOBUF, (int64_t)out.n);
    if (out.n)
        session_reply_bytes(s, &out);
    pb_writer_free(&out);
    session_reply(s, REPLY_END);
}
