/* The worker: sessions take turns, a batch or a request at a time. */
#include "server/worker.h"
#include "base/clock.h"

#include "base/alloc.h"
#include "server/routes.h"

#include <time.h>

enum { TURN_NS = 10000000 }; /* one session's, while others wait */

/* ---- what the loop calls ---- */

void worker_queue(struct worker *w, struct session *s)
{
    if (s->queued)
        return;
    s->queued = true;
    s->next_run = NULL;
    if (w->last_run) {
        w->last_run->next_run = s;
    } else {
        w->first_run = s;
        w->waiting_since_ns = clock_now_ns(CLOCK_MONOTONIC);
    }
    w->last_run = s;
    pthread_cond_signal(&w->wake);
}

void worker_ready(struct worker *w, struct session *s)
{
    if (s->ready || s->gone)
        return;
    s->ready = true;
    s->next_ready = w->first_ready;
    bool first = !w->first_ready;
    w->first_ready = s;
    if (first)
        w->notify(w->notify_ctx);
}

void worker_each_ready(struct worker *w, void (*each)(struct session *s))
{
    for (;;) {
        pthread_mutex_lock(&w->lock);
        struct session *s = w->first_ready;
        if (s) {
            w->first_ready = s->next_ready;
            s->ready = false;
        }
        pthread_mutex_unlock(&w->lock);
        if (!s)
            return;
        each(s);
    }
}

bool worker_hold(struct worker *w, size_t bytes)
{
    pthread_mutex_lock(&w->lock);
    bool room = w->held_bytes + bytes <= w->max_held_bytes;
    if (room)
        w->held_bytes += bytes;
    pthread_mutex_unlock(&w->lock);
    return room;
}

bool worker_has_room(struct worker *w, size_t bytes)
{
    pthread_mutex_lock(&w->lock);
    bool room = w->held_bytes + bytes <= w->max_held_bytes;
    pthread_mutex_unlock(&w->lock);
    return room;
}

void worker_release(struct worker *w, size_t bytes)
{
    pthread_mutex_lock(&w->lock);
    w->held_bytes -= bytes;
    pthread_mutex_unlock(&w->lock);
}

void worker_interrupt(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    struct session *s = w->current;
    if (s && w->first_run && clock_now_ns(CLOCK_MONOTONIC) - w->waiting_since_ns > w->blocked_ns)
        w->overdue = true;
    if (s && (s->gone || w->overdue))
        worker_interrupt_current(w);
    pthread_mutex_unlock(&w->lock);
}

int64_t worker_idle_ms(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    int64_t idle = w->busy || w->first_run ? 0 : (clock_now_ns(CLOCK_MONOTONIC) - w->last_request_ns) / 1000000;
    pthread_mutex_unlock(&w->lock);
    return idle;
}

/* ---- the thread ---- */

bool worker_begin_query_on(struct worker *w, struct session *s, struct tp *tp)
{
    pthread_mutex_lock(&w->lock);
    bool stays = !s->gone;
    w->current = stays ? s : NULL;
    w->running = tp;
    w->overdue = false;
    pthread_mutex_unlock(&w->lock);
    return stays;
}

bool worker_begin_query(struct worker *w, struct session *s)
{
    return worker_begin_query_on(w, s, NULL);
}

void worker_interrupt_current(struct worker *w)
{
    tp_interrupt(w->running ? w->running : w->trace->tp);
}

void worker_end_query(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    struct tp *tp = w->running ? w->running : w->trace->tp;
    w->current = NULL;
    w->running = NULL;
    w->overdue = false;
    if (tp)
        tp_interrupt_clear(tp); /* it may have come too late for its own query */
    pthread_mutex_unlock(&w->lock);
}

void worker_tables_gone(struct worker *w, struct session *by, enum tables_gone which, const char *error)
{
    pthread_mutex_lock(&w->lock);
    for (struct session *s = w->first_all; s; s = s->next_all) {
        if (s->view && which == TABLES_SHARED)
            continue;
        if (rpc_is_query(&s->rpc))
            answer_cut(&s->rpc.answer, error);
        s->view = NULL; /* gone with the trace */
        if (s != by && s->page && s->asked)
            s->tables_gone_error = error;
    }
    by->tables_gone_error = NULL;
    pthread_mutex_unlock(&w->lock);
}

bool worker_has_other_pages(struct worker *w, const struct session *than)
{
    bool found = false;
    pthread_mutex_lock(&w->lock);
    for (const struct session *s = w->first_all; s && !found; s = s->next_all)
        found = s != than && s->page && s->asked && !s->view && !s->tables_gone_error && !s->gone;
    pthread_mutex_unlock(&w->lock);
    return found;
}

static struct request *take_request(struct worker *w, struct session *s)
{
    pthread_mutex_lock(&w->lock);
    struct request *r = s->first;
    if (r) {
        s->first = r->next;
        if (!s->first)
            s->last = NULL;
        bool was_full = s->request_bytes >= REQUEST_ENOUGH_BYTES;
        s->request_bytes -= request_cost(r->len);
        w->held_bytes -= request_cost(r->len);
        if (was_full && s->request_bytes < REQUEST_ENOUGH_BYTES)
            worker_ready(w, s); /* reading may go on */
    }
    pthread_mutex_unlock(&w->lock);
    return r;
}

static void run_request(struct worker *w, struct session *s, const struct request *r)
{
    struct slice bytes = slice_of(r->p, r->len);
    switch (r->kind) {
    case REQUEST_RPC:
        rpc_handle(w, s, bytes);
        break;
    case REQUEST_ROUTE:
        route_run(w, s, r->route, bytes);
        break;
    case REQUEST_BROKEN:
        rpc_broken(s);
        break;
    case REQUEST_END:
        session_reply(s, REPLY_END);
        break;
    }
}

/* One request, or one piece of the answer that is on its way. False: there is nothing to do. */
static bool run_step(struct worker *w, struct session *s)
{
    if (w->trace->tp)
        tp_view_use(w->trace->tp, s->view);
    if (s->rpc.active != ANSWER_NONE) {
        rpc_continue(w, s);
        return true;
    }
    struct request *r = take_request(w, s);
    if (!r)
        return false;
    run_request(w, s, r);
    mem_free(r->p);
    mem_free(r);
    return true;
}

enum turn { TURN_GO_ON, TURN_OVER, TURN_BLOCKED, TURN_GONE };

/* May the session go on? The lock is held. */
static enum turn look(const struct worker *w, const struct session *s, int64_t start_ns)
{
    if (s->gone)
        return TURN_GONE;
    if (s->reply_bytes >= REPLY_ENOUGH_BYTES)
        return TURN_BLOCKED;
    return w->first_run && clock_now_ns(CLOCK_MONOTONIC) - start_ns > TURN_NS ? TURN_OVER : TURN_GO_ON;
}

/* A session's turn. */
static void run_session(struct worker *w, struct session *s)
{
    int64_t start = clock_now_ns(CLOCK_MONOTONIC);
    for (;;) {
        pthread_mutex_lock(&w->lock);
        enum turn turn = look(w, s, start);
        bool idle = turn == TURN_GO_ON && s->rpc.active == ANSWER_NONE && !s->first;
        if (turn != TURN_GO_ON || idle) {
            s->running = w->busy = false;
            s->blocked = turn == TURN_BLOCKED;
            w->last_request_ns = clock_now_ns(CLOCK_MONOTONIC);
            if (turn == TURN_OVER)
                worker_queue(w, s);
        }
        pthread_mutex_unlock(&w->lock);
        if (turn == TURN_GONE)
            client_session_free(s);
        if (turn != TURN_GO_ON || idle)
            return;
        run_step(w, s);
    }
}

static void *run(void *ctx)
{
    struct worker *w = ctx;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (!w->first_run && !(w->stop && !w->first_all))
            pthread_cond_wait(&w->wake, &w->lock);
        struct session *s = w->first_run;
        if (s) {
            w->first_run = s->next_run;
            if (!w->first_run)
                w->last_run = NULL;
            w->waiting_since_ns = clock_now_ns(CLOCK_MONOTONIC);
            s->queued = false;
            s->running = w->busy = true;
        }
        pthread_mutex_unlock(&w->lock);
        if (!s)
            return NULL;
        run_session(w, s);
    }
}

void worker_init(struct worker *w, struct trace *trace, size_t max_held_bytes, void (*notify)(void *), void *ctx)
{
    *w = (struct worker){.trace = trace, .max_held_bytes = max_held_bytes, .notify = notify, .notify_ctx = ctx};
    w->last_request_ns = clock_now_ns(CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
}

int worker_start(struct worker *w)
{
    return pthread_create(&w->thread, NULL, run, w) == 0 ? 0 : -1;
}

void worker_free(struct worker *w)
{
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    batch_pools_free(&w->pools);
}

void worker_close(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    worker_free(w);
}
