/* The public producer API: a producer on a thread of its own. */
#include "meridian/producer.h"

#include "base/clock.h"
#include "base/vec.h"
#include "capture/shm/producer_link.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

struct mrd_data_source {
    struct mrd_producer *owner;
    struct mrd_data_source_options o;
    char *name;
    bool registered; /* announced to the loop's producer */
    struct instance {
        uint64_t id;
        uint16_t target_buffer;
        int policy;
    } instances[16]; /* newest last */
    unsigned n_instances;
};

struct mrd_writer {
    pthread_mutex_t lock; /* held while a packet is open, so that a flush of the service cannot cut into it */
    struct trace_writer *w;
    struct mrd_data_source *ds;
    uint64_t instance;
    atomic_bool active;
    atomic_bool flush_wanted; /* the service asked while a packet was open */
};

struct mrd_producer {
    pthread_mutex_t lock; /* everything below */
    pthread_cond_t changed;
    uv_loop_t loop;
    uv_thread_t thread;
    uv_async_t async;
    struct producer *p;          /* the loop's thread only */
    struct shm_arbiter *arbiter; /* of the current connection; our own reference */
    bool connected, quit, has_loop;
    uint64_t syncs_wanted, syncs_sent, syncs_done;
    uint64_t flush_request; /* waits for writers with an open packet; 0: none */
    uint64_t hand_over_ns;  /* BOOTTIME of a hand-over that waits likewise */
    VEC(uint64_t) stopping; /* instances whose end waits likewise */
    VEC(char *) triggers;
    VEC(struct mrd_data_source *) sources;
    VEC(struct mrd_writer *) writers;
};

/* ---- on the loop's thread ---- */

static struct mrd_data_source *source_named(struct mrd_producer *m, const char *name)
{
    for (size_t i = 0; i < m->sources.n; i++)
        if (strcmp(m->sources.p[i]->name, name) == 0)
            return m->sources.p[i];
    return NULL;
}

static void on_start(void *ctx, uint64_t id, const Mrd__DataSourceConfig *config)
{
    struct mrd_producer *m = ctx;
    struct shm_arbiter *old = NULL;
    pthread_mutex_lock(&m->lock);
    if (m->arbiter != producer_arbiter(m->p) && producer_arbiter(m->p)) {
        old = m->arbiter;
        m->arbiter = shm_arbiter_ref(producer_arbiter(m->p));
    }
    struct mrd_data_source *ds = config->name ? source_named(m, config->name) : NULL;
    if (ds && ds->n_instances < sizeof ds->instances / sizeof *ds->instances) {
        int policy = config->buffer_exhausted_policy ? (int)config->buffer_exhausted_policy : ds->o.policy;
        ds->instances[ds->n_instances++] = (struct instance){id, (uint16_t)config->target_buffer, policy};
        pthread_cond_broadcast(&m->changed);
    }
    pthread_mutex_unlock(&m->lock);
    shm_arbiter_unref(old);
    if (ds && ds->o.started) {
        size_t len = mrd__data_source_config__get_packed_size(config);
        uint8_t *bytes = mem_alloc(len ? len : 1);
        if (bytes)
            mrd__data_source_config__pack(config, bytes);
        ds->o.started(ds->o.ctx, id, bytes, bytes ? len : 0);
        mem_free(bytes);
    }
    producer_notify_started(m->p, id);
}

static void remove_instance(struct mrd_producer *m, struct mrd_data_source *ds, unsigned i)
{
    uint64_t id = ds->instances[i].id;
    memmove(&ds->instances[i], &ds->instances[i + 1], (ds->n_instances - i - 1) * sizeof ds->instances[0]);
    ds->n_instances--;
    for (size_t k = 0; k < m->writers.n; k++)
        if (m->writers.p[k]->instance == id && m->writers.p[k]->ds == ds)
            atomic_store(&m->writers.p[k]->active, false);
}

/* Hands over what the writers of `m` hold; false when one has a packet open (it will do it itself). */
static bool flush_writers(struct mrd_producer *m)
{
    bool all = true;
    for (size_t i = 0; i < m->writers.n; i++) {
        struct mrd_writer *w = m->writers.p[i];
        atomic_store(&w->flush_wanted, true);
        if (pthread_mutex_trylock(&w->lock) == 0) {
            atomic_store(&w->flush_wanted, false);
            trace_writer_flush(w->w);
            pthread_mutex_unlock(&w->lock);
        } else {
            all = false;
        }
    }
    if (all && (m->flush_request || m->hand_over_ns || m->stopping.n))
        uv_async_send(&m->async); /* what waited for one of them need not wait for its next packet */
    return all;
}

static void on_stop(void *ctx, uint64_t id)
{
    struct mrd_producer *m = ctx;
    struct mrd_data_source *found = NULL;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->sources.n; i++)
        for (unsigned k = 0; k < m->sources.p[i]->n_instances; k++)
            if (m->sources.p[i]->instances[k].id == id) {
                found = m->sources.p[i];
                remove_instance(m, found, k);
                break;
            }
    /* behind it: a writer that is active after its packet knows that the packet is in. One in the middle of a packet
     * has finished ones in front of it: they go out with it, and the service waits for them. */
    bool done = flush_writers(m) || !vec_push(&m->stopping, id);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (found && found->o.stopped)
        found->o.stopped(found->o.ctx, id);
    if (done)
        producer_notify_stopped(m->p, id);
}

static void on_flush(void *ctx, uint64_t request_id, const uint64_t *ids, size_t n, uint64_t flags)
{
    struct mrd_producer *m = ctx;
    (void)ids;
    (void)n;
    (void)flags;
    pthread_mutex_lock(&m->lock);
    bool done = flush_writers(m);
    m->flush_request = done ? 0 : request_id;
    pthread_mutex_unlock(&m->lock);
    if (done)
        producer_flush_done(m->p, request_id);
}

static uint64_t on_hand_over(void *ctx)
{
    struct mrd_producer *m = ctx;
    uint64_t now = (uint64_t)clock_now_ns(CLOCK_BOOTTIME);
    pthread_mutex_lock(&m->lock);
    bool done = flush_writers(m);
    m->hand_over_ns = done ? 0 : m->hand_over_ns ? m->hand_over_ns : now; /* one may still wait for a writer */
    pthread_mutex_unlock(&m->lock);
    return done ? now : 0;
}

static void on_clear(void *ctx, const uint64_t *ids, size_t n)
{
    struct mrd_producer *m = ctx;
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < m->sources.n; i++) {
            struct mrd_data_source *ds = m->sources.p[i];
            for (unsigned j = 0; j < ds->n_instances; j++)
                if (ds->instances[j].id == ids[k] && ds->o.clear_incremental_state)
                    ds->o.clear_incremental_state(ds->o.ctx, ids[k]);
        }
    }
}

static void on_connected(void *ctx)
{
    struct mrd_producer *m = ctx;
    pthread_mutex_lock(&m->lock);
    m->connected = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    uv_async_send(&m->async); /* syncs and triggers that waited for the connection */
}

static void on_disconnected(void *ctx, const char *why)
{
    struct mrd_producer *m = ctx;
    (void)why;
    pthread_mutex_lock(&m->lock);
    m->connected = false;
    m->syncs_sent = m->syncs_done; /* asked again after the reconnect */
    m->flush_request = 0;
    m->hand_over_ns = 0;
    vec_clear(&m->stopping);
    for (size_t i = 0; i < m->sources.n; i++)
        while (m->sources.p[i]->n_instances)
            remove_instance(m, m->sources.p[i], m->sources.p[i]->n_instances - 1);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static const struct producer_ops ops = {
    .connected = on_connected,
    .disconnected = on_disconnected,
    .start = on_start,
    .stop = on_stop,
    .flush = on_flush,
    .clear_incremental_state = on_clear,
    .hand_over = on_hand_over,
};

static void on_synced(void *ctx)
{
    struct mrd_producer *m = ctx;
    pthread_mutex_lock(&m->lock);
    m->syncs_done++;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* Does what other threads asked for. */
static void on_async(uv_async_t *a)
{
    struct mrd_producer *m = a->data;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->sources.n; i++) {
        struct mrd_data_source *ds = m->sources.p[i];
        if (ds->registered)
            continue;
        ds->registered = true;
        producer_register(
            m->p,
            &(struct producer_data_source){.name = ds->name,
                                           .will_notify_on_start = true,
                                           .will_notify_on_stop = true,
                                           .handles_incremental_state_clear = ds->o.clear_incremental_state != NULL},
            NULL);
    }
    while (m->syncs_sent < m->syncs_wanted && producer_sync(m->p, on_synced, m))
        m->syncs_sent++;
    if (producer_is_connected(m->p) && m->triggers.n) {
        producer_activate_triggers(m->p, (const char *const *)m->triggers.p, m->triggers.n);
        for (size_t i = 0; i < m->triggers.n; i++)
            mem_free(m->triggers.p[i]);
        vec_clear(&m->triggers);
    }
    bool flushed = true;
    for (size_t i = 0; i < m->writers.n && (m->flush_request || m->hand_over_ns || m->stopping.n); i++)
        flushed &= !atomic_load(&m->writers.p[i]->flush_wanted);
    uint64_t flush = flushed ? m->flush_request : 0;
    uint64_t handed_over_ns = flushed ? m->hand_over_ns : 0;
    uint64_t *stopped = m->stopping.p;
    size_t n_stopped = flushed ? m->stopping.n : 0;
    if (n_stopped) { /* the list is ours now */
        m->stopping.p = NULL;
        m->stopping.n = m->stopping.cap = 0;
    }
    if (flushed) {
        m->flush_request = 0;
        m->hand_over_ns = 0;
    }
    bool quit = m->quit;
    if (quit)
        flush_writers(m);
    pthread_mutex_unlock(&m->lock);
    producer_handed_over(m->p, handed_over_ns);
    if (flush)
        producer_flush_done(m->p, flush);
    for (size_t i = 0; i < n_stopped; i++)
        producer_notify_stopped(m->p, stopped[i]);
    if (n_stopped)
        mem_free(stopped);
    if (quit) {
        producer_close(m->p);
        uv_close((uv_handle_t *)a, NULL);
    }
}

/* ---- for any thread ---- */

static void deadline(struct timespec *ts, unsigned timeout_ms)
{
    int64_t at = clock_now_ns(CLOCK_REALTIME) + (int64_t)timeout_ms * 1000000;
    *ts = (struct timespec){.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};
}

struct opening {
    struct mrd_producer *m;
    const struct mrd_producer_options *o;
    uv_sem_t ready;
    bool ok;
};

/* The producer remembers the thread that made it, so it is made on the loop's thread. */
static void open_and_run(void *arg)
{
    struct opening *o = arg;
    struct mrd_producer *m = o->m;
    o->ok = producer_open(&m->p, &m->loop,
                          &(struct producer_options){.name = o->o->name,
                                                     .socket = o->o->socket,
                                                     .shm_size_hint = o->o->shm_size_bytes,
                                                     .page_size_hint = o->o->page_size_bytes},
                          &ops, m, NULL) == 0;
    if (!o->ok)
        uv_close((uv_handle_t *)&m->async, NULL);
    uv_sem_post(&o->ready); /* `o` is gone after this */
    uv_run(&m->loop, UV_RUN_DEFAULT);
}

static void free_producer(struct mrd_producer *m)
{
    if (m->has_loop)
        uv_loop_close(&m->loop);
    for (size_t i = 0; i < m->sources.n; i++) {
        mem_free(m->sources.p[i]->name);
        mem_free(m->sources.p[i]);
    }
    for (size_t i = 0; i < m->triggers.n; i++)
        mem_free(m->triggers.p[i]);
    shm_arbiter_unref(m->arbiter);
    vec_free(&m->sources);
    vec_free(&m->triggers);
    vec_free(&m->stopping);
    vec_free(&m->writers);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    mem_free(m);
}

struct mrd_producer *mrd_producer_open(const struct mrd_producer_options *options)
{
    struct mrd_producer *m = mem_zalloc(sizeof *m);
    if (!m)
        return NULL;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    struct opening o = {.m = m, .o = options};
    m->has_loop = uv_loop_init(&m->loop) == 0;
    if (!m->has_loop || uv_sem_init(&o.ready, 0) != 0) {
        free_producer(m);
        return NULL;
    }
    uv_async_init(&m->loop, &m->async, on_async);
    m->async.data = m;
    if (uv_thread_create(&m->thread, open_and_run, &o) != 0) {
        uv_close((uv_handle_t *)&m->async, NULL);
        uv_run(&m->loop, UV_RUN_DEFAULT);
        uv_sem_destroy(&o.ready);
        free_producer(m);
        return NULL;
    }
    uv_sem_wait(&o.ready);
    uv_sem_destroy(&o.ready);
    if (o.ok)
        return m;
    uv_thread_join(&m->thread);
    free_producer(m);
    return NULL;
}

void mrd_producer_close(struct mrd_producer *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_mutex_unlock(&p->lock);
    uv_async_send(&p->async);
    uv_thread_join(&p->thread);
    free_producer(p);
}

bool mrd_producer_connected(const struct mrd_producer *p)
{
    return mrd_producer_wait_connected((struct mrd_producer *)(uintptr_t)p, 0);
}

bool mrd_producer_wait_connected(struct mrd_producer *p, unsigned timeout_ms)
{
    struct timespec ts;
    deadline(&ts, timeout_ms);
    pthread_mutex_lock(&p->lock);
    while (!p->connected && timeout_ms && pthread_cond_timedwait(&p->changed, &p->lock, &ts) == 0)
        ;
    bool ok = p->connected;
    pthread_mutex_unlock(&p->lock);
    return ok;
}

bool mrd_producer_sync(struct mrd_producer *p, unsigned timeout_ms)
{
    struct timespec ts;
    deadline(&ts, timeout_ms);
    pthread_mutex_lock(&p->lock);
    uint64_t mine = ++p->syncs_wanted;
    uv_async_send(&p->async);
    while (p->syncs_done < mine && pthread_cond_timedwait(&p->changed, &p->lock, &ts) == 0)
        ;
    bool ok = p->syncs_done >= mine;
    pthread_mutex_unlock(&p->lock);
    return ok;
}

void mrd_producer_activate_trigger(struct mrd_producer *p, const char *name)
{
    pthread_mutex_lock(&p->lock);
    char *copy = mem_strdup(name);
    if (!copy || !vec_push(&p->triggers, copy))
        mem_free(copy);
    pthread_mutex_unlock(&p->lock);
    uv_async_send(&p->async);
}

struct mrd_data_source *mrd_data_source_register(struct mrd_producer *p, const struct mrd_data_source_options *options)
{
    struct mrd_data_source *ds = mem_zalloc(sizeof *ds);
    char *name = mem_strdup(options->name);
    pthread_mutex_lock(&p->lock);
    bool ok = ds && name && !source_named(p, name) && vec_push(&p->sources, ds);
    if (ok) {
        ds->owner = p;
        ds->o = *options;
        ds->name = name;
        if (!ds->o.policy)
            ds->o.policy = MRD_DROP;
    }
    pthread_mutex_unlock(&p->lock);
    if (!ok) {
        mem_free(name);
        mem_free(ds);
        return NULL;
    }
    uv_async_send(&p->async);
    return ds;
}

unsigned mrd_data_source_instances(const struct mrd_data_source *ds)
{
    pthread_mutex_lock(&ds->owner->lock);
    unsigned n = ds->n_instances;
    pthread_mutex_unlock(&ds->owner->lock);
    return n;
}

bool mrd_data_source_wait_started(struct mrd_data_source *ds, unsigned timeout_ms)
{
    struct timespec ts;
    deadline(&ts, timeout_ms);
    pthread_mutex_lock(&ds->owner->lock);
    while (!ds->n_instances && pthread_cond_timedwait(&ds->owner->changed, &ds->owner->lock, &ts) == 0)
        ;
    bool ok = ds->n_instances > 0;
    pthread_mutex_unlock(&ds->owner->lock);
    return ok;
}

struct mrd_writer *mrd_writer_open(struct mrd_data_source *ds)
{
    struct mrd_producer *m = ds->owner;
    struct mrd_writer *w = mem_zalloc(sizeof *w);
    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_lock(&m->lock);
    struct shm_arbiter *a = ds->n_instances ? m->arbiter : NULL;
    if (a) {
        const struct instance *i = &ds->instances[ds->n_instances - 1];
        w->ds = ds;
        w->instance = i->id;
        atomic_init(&w->active, true);
        w->w = trace_writer_new(a, i->target_buffer, (enum shm_policy)i->policy);
        if (w->w && !vec_push(&m->writers, w)) {
            trace_writer_free(w->w);
            w->w = NULL;
        }
    }
    pthread_mutex_unlock(&m->lock);
    if (w->w)
        return w;
    pthread_mutex_destroy(&w->lock);
    mem_free(w);
    return NULL;
}

void mrd_writer_close(struct mrd_writer *w)
{
    if (!w)
        return;
    struct mrd_producer *m = w->ds->owner;
    if (w->w->in_packet)
        mrd_packet_end(w);
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->writers.n; i++)
        if (m->writers.p[i] == w)
            m->writers.p[i] = m->writers.p[--m->writers.n];
    trace_writer_free(w->w);
    pthread_mutex_unlock(&m->lock);
    uv_async_send(&m->async); /* a flush may have waited for this one */
    pthread_mutex_destroy(&w->lock);
    mem_free(w);
}

bool mrd_writer_active(const struct mrd_writer *w)
{
    return atomic_load(&w->active);
}

void mrd_packet_begin(struct mrd_writer *w)
{
    if (!w->w->in_packet)
        pthread_mutex_lock(&w->lock);
    trace_writer_begin_packet(w->w);
}

void mrd_packet_end(struct mrd_writer *w)
{
    if (!w->w->in_packet)
        return;
    trace_writer_end_packet(w->w);
    pthread_mutex_unlock(&w->lock);
    if (!atomic_load(&w->flush_wanted)) /* after the unlock: the library's thread sets it before it tries the lock */
        return;
    mrd_writer_flush(w);
    atomic_store(&w->flush_wanted, false);
    uv_async_send(&w->ds->owner->async);
}

void mrd_writer_flush(struct mrd_writer *w)
{
    if (w->w->in_packet)
        return;
    pthread_mutex_lock(&w->lock);
    trace_writer_flush(w->w);
    pthread_mutex_unlock(&w->lock);
}

void mrd_put_varint(struct mrd_writer *w, uint32_t field, uint64_t value)
{
    trace_writer_varint(w->w, field, value);
}
void mrd_put_fixed64(struct mrd_writer *w, uint32_t field, uint64_t value)
{
    trace_writer_fixed64(w->w, field, value);
}
void mrd_put_fixed32(struct mrd_writer *w, uint32_t field, uint32_t value)
{
    trace_writer_fixed32(w->w, field, value);
}
void mrd_put_double(struct mrd_writer *w, uint32_t field, double value)
{
    trace_writer_double(w->w, field, value);
}
void mrd_put_string(struct mrd_writer *w, uint32_t field, const char *text)
{
    trace_writer_str(w->w, field, text);
}
void mrd_message_begin(struct mrd_writer *w, uint32_t field)
{
    trace_writer_begin(w->w, field);
}
void mrd_message_end(struct mrd_writer *w)
{
    trace_writer_end(w->w);
}

void mrd_put_bytes(struct mrd_writer *w, uint32_t field, const void *bytes, size_t len)
{
    trace_writer_bytes(w->w, field, bytes, len);
}

struct mrd_writer_stats mrd_writer_get_stats(const struct mrd_writer *w)
{
    const struct trace_writer_stats *s = trace_writer_get_stats(w->w);
    return (struct mrd_writer_stats){s->packets, s->dropped, s->chunks, s->loss_marks};
}
