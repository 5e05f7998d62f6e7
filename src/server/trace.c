/* The traces being served. */
#include "server/trace.h"

#include "rpc/wire.h"

#include <stdio.h>

void trace_init(struct trace *t, struct tp *tp, const char *name, const struct tp_config *config)
{
    *t = (struct trace){.tp = tp, .finished = tp != NULL, .config = *config};
    pthread_mutex_init(&t->lock, NULL);
    snprintf(t->name, sizeof t->name, "%s", name && tp ? name : "");
}

void trace_free(struct trace *t)
{
    summarizers_clear(&t->summarizers);
    tp_close(t->tp);
    pthread_mutex_destroy(&t->lock);
    t->tp = NULL;
}

static void set_name(struct trace *t, const char *name, double megabytes)
{
    pthread_mutex_lock(&t->lock);
    if (name)
        snprintf(t->name, sizeof t->name, "%s (%.1f MB)", name, megabytes);
    else
        t->name[0] = '\0';
    pthread_mutex_unlock(&t->lock);
}

int trace_reset(struct trace *t, const struct tp_config *config)
{
    summarizers_clear(&t->summarizers);
    tp_close(t->tp);
    t->n_views = 0;
    t->finished = false;
    set_name(t, NULL, 0);
    int rc = tp_open(&t->tp, config ? config : &t->config);
    if (rc == 0 && t->prepare)
        rc = t->prepare(t->prepare_ctx, t->tp);
    return rc;
}

int trace_append(struct trace *t, const void *bytes, size_t len)
{
    int rc = t->tp && !t->finished ? 0 : trace_reset(t, NULL);
    return rc < 0 ? rc : tp_feed(t->tp, bytes, len);
}

int trace_finish(struct trace *t)
{
    int rc = t->tp ? 0 : trace_reset(t, NULL);
    if (rc < 0 || t->finished)
        return rc;
    t->finished = true;
    rc = tp_finish(t->tp);
    set_name(t, "Unnamed trace", (double)tp_loaded_bytes(t->tp) / 1e6);
    return rc;
}

int trace_open_view(struct trace *t, struct tp_view **out)
{
    *out = NULL;
    int rc = t->n_views < t->max_views ? tp_view_open(t->tp, out) : -1;
    t->n_views += rc == 0;
    return rc;
}

void trace_close_view(struct trace *t, struct tp_view *view)
{
    if (!view)
        return;
    tp_view_close(t->tp, view);
    t->n_views--;
}

const char *trace_error(const struct trace *t)
{
    const char *text = t->tp ? tp_error(t->tp) : "no trace is loaded";
    return text[0] ? text : "Unknown error";
}

void trace_put_status(struct trace *t, struct pb_writer *w)
{
    pthread_mutex_lock(&t->lock);
    if (t->name[0])
        pb_put_str(w, STATUS_TRACE_NAME, t->name);
    pthread_mutex_unlock(&t->lock);
    pb_put_str(w, STATUS_VERSION, "Meridian v" MERIDIAN_VERSION);
    pb_put_varint(w, STATUS_API_VERSION, RPC_API_VERSION);
}
