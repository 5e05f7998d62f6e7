/* What the worker serves: one handle of the library, its name, and how to open another one. */
#ifndef MERIDIAN_SERVER_TRACE_H
#define MERIDIAN_SERVER_TRACE_H

#include "meridian/tp.h"
#include "server/summarizers.h"
#include "wire/pb_writer.h"

#include <pthread.h>

struct trace {
    struct tp *tp;             /* NULL until a client brings data */
    size_t n_views, max_views; /* beside the first */
    bool finished;
    struct summarizers summarizers; /* on tp: gone when another one takes its place */
    struct tp_config config;
    int (*prepare)(void *ctx, struct tp *tp);
    void *prepare_ctx;
    pthread_mutex_t lock; /* over name: the loop reads it for /status */
    char name[256];       /* "" when nothing is loaded */
};

/* Takes over `tp` (may be NULL). */
void trace_init(struct trace *t, struct tp *tp, const char *name, const struct tp_config *config);
void trace_free(struct trace *t);

/* An empty handle in place of the one that is there; `config` NULL: as before. Every result must be closed; views are
 * gone with it. */
int trace_reset(struct trace *t, const struct tp_config *config);

/* Appends data (to a new handle when the old one was finished), and says that all has come. Negative: trace_error(). */
int trace_append(struct trace *t, const void *bytes, size_t len);
int trace_finish(struct trace *t);

/* A set of tables for one client. Negative: there are enough of them, or trace_error(). */
int trace_open_view(struct trace *t, struct tp_view **out);
void trace_close_view(struct trace *t, struct tp_view *view); /* NULL is fine */

const char *trace_error(const struct trace *t);

/* Writes a StatusResult. From any thread. */
void trace_put_status(struct trace *t, struct pb_writer *w);

#endif
