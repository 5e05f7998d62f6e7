/* The threads that decompress ahead, and the ring of their jobs. */
#include "importer/input/inflate_pool.h"

#include "wire/inflate.h"

#include <pthread.h>

enum {
    JOBS = 16,
    MAX_THREADS = 8,
    FIRST_BYTES = 512 << 10, /* more than the packets of the service unpack to */
    SPARE_BYTES = 64 << 20,  /* for larger ones, all together; beyond that they are left to the reader */
};

struct job {
    struct slice payload;
    struct block *out; /* NULL: unfinished */
    bool zstd;
    bool done;
};

struct inflate_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t finished;
    struct job jobs[JOBS];
    uint64_t submitted;
    uint64_t begun;
    uint64_t taken;
    size_t spare; /* bytes that jobs may still take beyond their first */
    bool stop;
    unsigned n_threads;
    pthread_t threads[MAX_THREADS];
};

static struct block *grown(struct block *b, size_t cap)
{
    struct block *g = mem_realloc(b, sizeof *g + cap);
    if (!g) {
        mem_free(b);
        return NULL;
    }
    if (!b)
        *g = (struct block){0};
    g->cap = cap;
    return g;
}

/* Room for as much again; false when the spare bytes do not allow it. */
static bool reserve(struct inflate_pool *p, size_t bytes)
{
    pthread_mutex_lock(&p->lock);
    bool granted = bytes <= p->spare;
    p->spare -= granted ? bytes : 0;
    pthread_mutex_unlock(&p->lock);
    return granted;
}

/* With the lock held: what a job took beyond its first bytes is there for others. */
static void unreserve(struct inflate_pool *p, size_t cap)
{
    p->spare += cap > FIRST_BYTES ? cap - FIRST_BYTES : 0;
}

/* *cap is how large it became, also when it is given up. */
static struct block *inflate_whole(struct inflate_pool *p, struct inflater *z, struct slice in, size_t *cap)
{
    size_t written;
    struct block *b = grown(NULL, *cap = FIRST_BYTES);
    inflater_reset(z);
    while (b) {
        if (inflater_run(z, &in, b->bytes + b->n, b->cap - b->n, &written, NULL) != 0)
            break;
        b->n += written;
        if (!in.len && b->n < b->cap) {
            if (inflater_at_end(z))
                return b;
            break;
        }
        if (b->n < b->cap)
            continue;
        if (!reserve(p, b->cap))
            break;
        b = grown(b, *cap *= 2);
    }
    mem_free(b);
    return NULL;
}

static void *run_worker(void *ctx)
{
    struct inflate_pool *p = ctx;
    struct inflater *inflaters[2] = {NULL, NULL};
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (p->begun == p->submitted) {
            pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        struct job *j = &p->jobs[p->begun++ % JOBS];
        struct slice payload = j->payload;
        bool zstd = j->zstd;
        pthread_mutex_unlock(&p->lock);
        if (!inflaters[zstd])
            inflaters[zstd] = inflater_open(zstd ? INFLATE_ZSTD : INFLATE_DEFLATE);
        size_t cap = 0;
        struct block *out = inflaters[zstd] ? inflate_whole(p, inflaters[zstd], payload, &cap) : NULL;
        pthread_mutex_lock(&p->lock);
        if (!out)
            unreserve(p, cap);
        j->out = out;
        j->done = true;
        pthread_cond_broadcast(&p->finished);
    }
    pthread_mutex_unlock(&p->lock);
    inflater_close(inflaters[0]);
    inflater_close(inflaters[1]);
    return NULL;
}

struct inflate_pool *inflate_pool_open(unsigned threads)
{
    struct inflate_pool *p = mem_zalloc(sizeof *p);
    if (!p)
        return NULL;
    p->spare = SPARE_BYTES;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->finished, NULL);
    for (unsigned i = 0; i < threads && i < MAX_THREADS; i++) {
        if (pthread_create(&p->threads[i], NULL, run_worker, p) != 0)
            break;
        p->n_threads++;
    }
    if (p->n_threads)
        return p;
    inflate_pool_close(p);
    return NULL;
}

void inflate_pool_close(struct inflate_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    for (; p->taken < p->submitted; p->taken++)
        mem_free(p->jobs[p->taken % JOBS].out);
    pthread_cond_destroy(&p->finished);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

bool inflate_pool_has_room(const struct inflate_pool *p)
{
    return p->submitted - p->taken < JOBS; /* both change in the reader's thread only */
}

void inflate_pool_submit(struct inflate_pool *p, struct slice payload, bool zstd)
{
    pthread_mutex_lock(&p->lock);
    p->jobs[p->submitted++ % JOBS] = (struct job){.payload = payload, .zstd = zstd};
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

struct block *inflate_pool_take(struct inflate_pool *p, struct slice payload)
{
    if (p->taken == p->submitted || p->jobs[p->taken % JOBS].payload.p != payload.p)
        return NULL;
    struct job *j = &p->jobs[p->taken % JOBS];
    pthread_mutex_lock(&p->lock);
    while (!j->done)
        pthread_cond_wait(&p->finished, &p->lock);
    struct block *out = j->out;
    unreserve(p, out ? out->cap : 0);
    j->out = NULL;
    p->taken++;
    pthread_mutex_unlock(&p->lock);
    return out;
}
