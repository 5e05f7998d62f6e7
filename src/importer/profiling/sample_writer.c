/* Samples on their way to their tables: the batch that is filled, and the thread that writes those that are full.
 *
 * While the thread has batches, the tables are its own. It is woken when half of the ring is full, and by a flush. */
#include "importer/profiling/sample_writer.h"

#include "base/alloc.h"

#include <pthread.h>

enum { RING = 8, PIECE = 64 /* rows whose words stay in the nearest cache */ };

struct sample_thread {
    struct storage *st;
    strid source;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled, written;
    uint64_t n_filled, n_written;
    bool stop;
    struct sample_batch *ring[RING];
};

static void write_piece(struct storage *st, strid source, const struct sample_batch *b, uint32_t from, uint32_t n)
{
    struct table *samples = &st->t[T_profiler_sample], *sets = &st->t[T_profiler_counter_set],
                 *counters = &st->t[T_counter];
    int64_t task[PIECE], execution[PIECE], callsite[PIECE], unwind_error[PIECE], session[PIECE], track[PIECE];
    for (uint32_t i = 0; i < n; i++) {
        const struct sample_place *x = &b->places[b->place[from + i]];
        task[i] = x->task;
        execution[i] = x->execution;
        callsite[i] = x->callsite;
        unwind_error[i] = x->unwind_error;
        session[i] = x->session;
        track[i] = x->track;
    }
    struct table_words sample[profiler_sample_n_columns] = {
        [profiler_sample_c_ts] = {.p = b->ts + from},
        [profiler_sample_c_source] = {.first = source},
        [profiler_sample_c_task_context_id] = {.p = task},
        [profiler_sample_c_execution_context_id] = {.p = execution},
        [profiler_sample_c_callsite_id] = {.p = callsite},
        [profiler_sample_c_unwind_error] = {.p = unwind_error},
        [profiler_sample_c_session_id] = {.p = session},
        [profiler_sample_c_counter_set_id] = {.first = sets->n_rows, .step = 1},
    };
    struct table_words set[profiler_counter_set_n_columns] = {
        [profiler_counter_set_c_counter_set_id] = {.first = sets->n_rows, .step = 1},
        [profiler_counter_set_c_counter_id] = {.first = counters->n_rows, .step = 1},
    };
    struct table_words counter[counter_n_columns] = {
        [counter_c_ts] = {.p = b->ts + from},
        [counter_c_track_id] = {.p = track},
        [counter_c_value] = {.p = b->value + from},
        [counter_c_arg_set_id] = {.first = argset_cell(ARGSET_NONE)},
    };
    table_append_columns(samples, sample, n);
    table_append_columns(sets, set, n);
    table_append_columns(counters, counter, n);
}

static void write_batch(struct storage *st, strid source, const struct sample_batch *b)
{
    for (uint32_t from = 0; from < b->n; from += PIECE)
        write_piece(st, source, b, from, b->n - from < PIECE ? b->n - from : PIECE);
}

static void begin_batch(struct sample_writer *w, struct sample_batch *b)
{
    w->batch = b;
    b->number = ++w->number;
    b->n = b->n_places = 0;
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

static void *write_behind(void *ctx)
{
    struct sample_thread *t = ctx;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->n_filled == t->n_written && !t->stop)
            pthread_cond_wait(&t->filled, &t->lock);
        if (t->stop)
            break;
        struct sample_batch *b = t->ring[t->n_written % RING];
        pthread_mutex_unlock(&t->lock);
        write_batch(t->st, t->source, b);
        pthread_mutex_lock(&t->lock);
        t->n_written++;
        pthread_cond_signal(&t->written);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void free_thread(struct sample_thread *t)
{
    for (uint32_t i = 0; i < RING; i++)
        mem_free(t->ring[i]);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->filled);
    pthread_cond_destroy(&t->written);
    mem_free(t);
}

/* The batch that is being filled becomes the first of the ring. NULL when there is no thread, or no memory for it. */
static struct sample_thread *begin_thread(struct sample_writer *w)
{
    struct sample_thread *t = mem_zalloc(sizeof *t);
    if (!t)
        return NULL;
    t->st = w->st;
    t->source = w->source;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->filled, NULL);
    pthread_cond_init(&t->written, NULL);
    bool ok = true;
    for (uint32_t i = 1; i < RING; i++)
        ok = ok && (t->ring[i] = mem_alloc(sizeof *t->ring[i]));
    if (!ok || pthread_create(&t->thread, NULL, write_behind, t)) {
        free_thread(t);
        return NULL;
    }
    t->ring[0] = w->batch;
    return t;
}

/* Gives the batch to the thread; another one is begun, once there is room. */
static void give(struct sample_writer *w)
{
    struct sample_thread *t = w->thread;
    w->row = w->given ? w->row : w->st->t[T_profiler_sample].n_rows;
    w->given += w->batch->n;
    pthread_mutex_lock(&t->lock);
    uint64_t waiting = ++t->n_filled - t->n_written;
    if (waiting >= RING / 2)
        pthread_cond_signal(&t->filled);
    while (t->n_filled - t->n_written == RING)
        pthread_cond_wait(&t->written, &t->lock);
    pthread_mutex_unlock(&t->lock);
    begin_batch(w, t->ring[t->n_filled % RING]);
}

static void wait_for_thread(struct sample_writer *w)
{
    struct sample_thread *t = w->thread;
    pthread_mutex_lock(&t->lock);
    pthread_cond_signal(&t->filled);
    while (t->n_filled != t->n_written)
        pthread_cond_wait(&t->written, &t->lock);
    pthread_mutex_unlock(&t->lock);
    w->given = 0;
}

/* --- the caller's side -------------------------------------------------------------------------------------------- */

void sample_writer_hand_on(struct sample_writer *w)
{
    if (w->may_use_thread && !w->thread) {
        w->thread = begin_thread(w);
        w->may_use_thread = w->thread != NULL;
    }
    if (w->thread) {
        give(w);
        return;
    }
    write_batch(w->st, w->source, w->batch);
    begin_batch(w, w->batch);
}

void sample_writer_flush_all(struct sample_writer *w)
{
    if (w->given)
        wait_for_thread(w);
    write_batch(w->st, w->source, w->batch);
    begin_batch(w, w->batch);
}

uint32_t sample_writer_row(const struct sample_writer *w)
{
    return (w->given ? w->row + w->given : w->st->t[T_profiler_sample].n_rows) + w->batch->n;
}

struct sample_writer *sample_writer_open(struct storage *st, strid source, bool may_use_thread)
{
    struct sample_writer *w = mem_zalloc(sizeof *w);
    struct sample_batch *b = w ? mem_alloc(sizeof *b) : NULL;
    if (!b) {
        mem_free(w);
        return NULL;
    }
    w->st = st;
    w->source = source;
    w->may_use_thread = may_use_thread;
    begin_batch(w, b);
    return w;
}

void sample_writer_close(struct sample_writer *w)
{
    if (!w)
        return;
    struct sample_thread *t = w->thread;
    if (t) {
        pthread_mutex_lock(&t->lock);
        t->stop = true;
        pthread_cond_signal(&t->filled);
        pthread_mutex_unlock(&t->lock);
        pthread_join(t->thread, NULL);
        free_thread(t); /* and the batch */
    } else {
        mem_free(w->batch);
    }
    mem_free(w);
}
