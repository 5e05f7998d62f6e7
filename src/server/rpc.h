/* The methods of TraceProcessorRpc, on the worker's thread. */
#ifndef MERIDIAN_SERVER_RPC_H
#define MERIDIAN_SERVER_RPC_H

#include "server/batches.h"

struct session;
struct rows_answer;
struct worker;

/* The answer that is on its way. */
enum answer_kind {
    ANSWER_NONE,
    ANSWER_RPC_QUERY,
    ANSWER_RPC_STATEMENT,
    ANSWER_RPC_FILE,
    ANSWER_HTTP_QUERY,
    ANSWER_HTTP_FILE,
    ANSWER_ROWS,
};

/* What a session has going: the counts of both directions, and the answer that is on its way. */
struct rpc {
    int64_t last_request_seq;
    int64_t next_reply_seq;
    struct answer answer;
    enum answer_kind active;
    int file;                 /* being sent, ANSWER_*_FILE */
    struct rows_answer *rows; /* ANSWER_ROWS */
    size_t statement_tail;
    bool statement_executed;
};

/* Is a query's answer on its way? */
bool rpc_is_query(const struct rpc *r);
void rpc_free(struct worker *w, struct rpc *r);

/* Handles one message: answers it, or leaves rpc.active set. */
void rpc_handle(struct worker *w, struct session *s, struct slice message);

/* The stream is not an RPC stream: says so and parts. */
void rpc_broken(struct session *s);

/* The next piece of the answer that is on its way. */
void rpc_continue(struct worker *w, struct session *s);

/* ---- parts that HTTP routes use too: each writes the fields of its result ---- */

void rpc_append(struct worker *w, struct session *s, struct slice data, struct pb_writer *out);
void rpc_finalize(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
void rpc_restore(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
void rpc_metatrace_start(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
void rpc_metatrace_stop(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);

/* Before a session's query: NULL, and worker_end_query() is to follow; or why it is not to run. */
const char *rpc_begin_asking(struct worker *w, struct session *s);

/* Begins a query's answer: the SQL of QueryArgs. `kind`: ANSWER_RPC_QUERY or ANSWER_HTTP_QUERY. */
void rpc_begin_query(struct worker *w, struct session *s, struct slice args, enum answer_kind kind);

/* Writes the export that ExportArgs ask for into a file without a name: its descriptor, or -1 with the error's text. */
int rpc_export_file(struct worker *w, struct session *s, struct slice args, char *error, size_t room);

#endif
