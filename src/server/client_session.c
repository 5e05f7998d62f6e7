/* The lists between the loop and the worker. */
#include "server/client_session.h"

#include "base/alloc.h"
#include "server/worker.h"

struct session *session_open(struct worker *w, void *conn)
{
    struct session *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->worker = w;
    s->conn = conn;
    s->rpc.file = -1;
    s->rpc.answer.overdue = &w->overdue;
    pthread_mutex_lock(&w->lock);
    s->next_all = w->first_all;
    if (s->next_all)
        s->next_all->prev_all = s;
    w->first_all = s;
    pthread_mutex_unlock(&w->lock);
    return s;
}

/* ---- the loop's side ---- */

bool session_push(struct session *s, enum request_kind kind, const struct route *route, uint8_t *p, size_t len)
{
    struct request *r = mem_alloc(sizeof *r);
    if (!r || !worker_hold(s->worker, request_cost(len))) {
        mem_free(r);
        mem_free(p);
        return false;
    }
    *r = (struct request){.kind = kind, .route = route, .p = p, .len = len};
    struct worker *w = s->worker;
    pthread_mutex_lock(&w->lock);
    if (s->last)
        s->last->next = r;
    else
        s->first = r;
    s->last = r;
    s->request_bytes += request_cost(len);
    if (!s->blocked && !s->running)
        worker_queue(w, s);
    pthread_mutex_unlock(&w->lock);
    return true;
}

struct reply *session_take_reply(struct session *s)
{
    pthread_mutex_lock(&s->worker->lock);
    struct reply *r = s->first_reply;
    if (r) {
        s->first_reply = r->next;
        if (!s->first_reply)
            s->last_reply = NULL;
    }
    pthread_mutex_unlock(&s->worker->lock);
    return r;
}

void reply_free(struct reply *r)
{
    mem_free(r->p);
    mem_free(r);
}

void session_sent(struct session *s, struct reply *r)
{
    struct worker *w = s->worker;
    pthread_mutex_lock(&w->lock);
    s->reply_bytes -= reply_cost(r);
    if (s->blocked && s->reply_bytes <= REPLY_AGAIN_BYTES) {
        s->blocked = false;
        worker_queue(w, s);
    }
    pthread_mutex_unlock(&w->lock);
    reply_free(r);
}

bool session_is_cut(struct session *s)
{
    pthread_mutex_lock(&s->worker->lock);
    bool cut = s->cut;
    pthread_mutex_unlock(&s->worker->lock);
    return cut;
}

void session_is_page(struct session *s)
{
    pthread_mutex_lock(&s->worker->lock);
    s->page = true;
    pthread_mutex_unlock(&s->worker->lock);
}

bool session_is_full(struct session *s)
{
    pthread_mutex_lock(&s->worker->lock);
    bool full = s->request_bytes >= REQUEST_ENOUGH_BYTES;
    pthread_mutex_unlock(&s->worker->lock);
    return full;
}

static void forget_ready(struct worker *w, struct session *s)
{
    struct session **at = &w->first_ready;
    while (*at && *at != s)
        at = &(*at)->next_ready;
    if (*at)
        *at = s->next_ready;
    s->ready = false;
}

void session_leave(struct session *s)
{
    struct worker *w = s->worker;
    pthread_mutex_lock(&w->lock);
    s->gone = true;
    s->conn = NULL;
    if (s->ready)
        forget_ready(w, s);
    if (w->current == s)
        worker_interrupt_current(w);
    s->blocked = false;
    if (!s->running)
        worker_queue(w, s); /* to be freed */
    pthread_mutex_unlock(&w->lock);
}

/* ---- the worker's side ---- */

static void add_reply(struct session *s, struct reply reply)
{
    struct worker *w = s->worker;
    struct reply *r = mem_alloc(sizeof *r);
    pthread_mutex_lock(&w->lock);
    if (!r || s->gone) {
        s->cut |= !r; /* the client must not take what follows for the whole */
        worker_ready(w, s);
        pthread_mutex_unlock(&w->lock);
        mem_free(reply.p);
        mem_free(r);
        return;
    }
    *r = reply;
    if (s->last_reply)
        s->last_reply->next = r;
    else
        s->first_reply = r;
    s->last_reply = r;
    s->reply_bytes += reply_cost(r);
    worker_ready(w, s);
    pthread_mutex_unlock(&w->lock);
}

void session_reply_bytes(struct session *s, struct pb_writer *w)
{
    add_reply(s, (struct reply){.kind = REPLY_BYTES, .p = w->p, .len = w->n});
    *w = (struct pb_writer){0};
}

void session_reply(struct session *s, enum reply_kind kind)
{
    add_reply(s, (struct reply){.kind = kind});
}

void session_reply_head(struct session *s, int status, const char *type, int64_t length)
{
    add_reply(s, (struct reply){.kind = REPLY_HEAD, .status = status, .type = type, .length = length});
}

void client_session_free(struct session *s)
{
    struct worker *w = s->worker;
    pthread_mutex_lock(&w->lock);
    if (s->prev_all)
        s->prev_all->next_all = s->next_all;
    else
        w->first_all = s->next_all;
    if (s->next_all)
        s->next_all->prev_all = s->prev_all;
    w->held_bytes -= s->request_bytes;
    pthread_mutex_unlock(&w->lock);
    for (struct request *r = s->first, *next; r; r = next) {
        next = r->next;
        mem_free(r->p);
        mem_free(r);
    }
    for (struct reply *r = s->first_reply, *next; r; r = next) {
        next = r->next;
        reply_free(r);
    }
    rpc_free(w, &s->rpc);
    summarizers_leave(&w->trace->summarizers, s);
    trace_close_view(w->trace, s->view);
    mem_free(s);
}
