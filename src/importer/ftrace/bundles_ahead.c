/* The thread that splits bundles ahead, and the ring of what it has split. */
#include "importer/ftrace/bundles_ahead.h"

#include "importer/ftrace/ftrace.h"

#include <pthread.h>

enum {
    RING = 128,
    WORTH_A_THREAD = 1 << 20, /* bytes of the file that are left */
    NEAR = 128 << 10,         /* bytes before the reader that are left to it: it will soon be there */
    FAR = 1 << 20,            /* beyond them no bundle is left to it */
    FARTHEST = 4 << 20,       /* no event is touched beyond them: its page would take memory long before its turn */
};

struct bundles_ahead {
    struct bundle_split own; /* what the reader splits itself */
    uintptr_t file;          /* the one that the thread reads; 0: none */
    bool running;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t moved;  /* the reader has */
    pthread_cond_t split;  /* one more is */
    const uint8_t *reader; /* behind the packet that it is at */
    bool stop;
    const uint8_t *waits_with; /* the bundle that the thread has no room for; NULL: it does not wait */
    uint64_t claimed, done, taken;
    struct bundle_split ring[RING];

    /* the thread's own */
    struct pb_cursor packets;
    size_t owed; /* bytes that were left to the reader and not taken in turn */
};

/* --- the thread --------------------------------------------------------------------------------------------------- */

/* The next bundle that may be split before its turn; empty at the end of the file. */
static struct slice next_bundle(struct pb_cursor *packets)
{
    struct pb_field packet, bundle;
    while (pb_next(packets, &packet))
        if (packet.id == TRACE_PACKET && pb_find(pb_bytes(&packet), TRACE_PACKET_FTRACE_EVENTS, &bundle) &&
            pb_bytes(&bundle).len >= BUNDLE_WORTH_BLOCKS)
            return pb_bytes(&bundle);
    return slice_of(NULL, 0);
}

/* Every second byte is the reader's, so that both have the same to do; and more when it would catch up. */
static bool is_ours(struct bundles_ahead *a, struct slice bundle)
{
    if (bundle.p - a->reader < NEAR)
        return false;
    if (bundle.p - a->reader > FAR || a->owed >= bundle.len) {
        a->owed -= a->owed < bundle.len ? a->owed : bundle.len;
        return true;
    }
    a->owed += bundle.len;
    return false;
}

/* Waits for room, when there is none, until there is much of it. */
static void wait_for_room(struct bundles_ahead *a, const uint8_t *bundle)
{
    if (a->claimed - a->taken < RING && bundle - a->reader <= FARTHEST)
        return;
    a->waits_with = bundle;
    while (!a->stop && a->waits_with)
        pthread_cond_wait(&a->moved, &a->lock);
}

static void wake_when_there_is_room(struct bundles_ahead *a)
{
    if (!a->waits_with || a->claimed - a->taken > RING / 2 || a->waits_with - a->reader > FARTHEST / 2)
        return;
    a->waits_with = NULL;
    pthread_cond_signal(&a->moved);
}

static void *split_ahead(void *ctx)
{
    struct bundles_ahead *a = ctx;
    struct slice bundle;
    while ((bundle = next_bundle(&a->packets)).len) {
        pthread_mutex_lock(&a->lock);
        wait_for_room(a, bundle.p);
        bool stop = a->stop, ours = !stop && is_ours(a, bundle);
        struct bundle_split *s = &a->ring[a->claimed % RING];
        if (ours) {
            s->bytes = bundle;
            a->claimed++;
        }
        pthread_mutex_unlock(&a->lock);
        if (stop)
            break;
        if (!ours)
            continue;
        bundle_split(s);
        pthread_mutex_lock(&a->lock);
        a->done++;
        pthread_cond_signal(&a->split);
        pthread_mutex_unlock(&a->lock);
    }
    return NULL;
}

/* --- the reader --------------------------------------------------------------------------------------------------- */

static void stop_thread(struct bundles_ahead *a)
{
    if (!a->running)
        return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_signal(&a->moved);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    a->running = false;
    for (; a->taken < a->claimed; a->taken++)
        bundle_split_clear(&a->ring[a->taken % RING]);
}

/* When it is a file's first bundle: a thread for those behind it, if that is worth it. */
static void begin_file(struct bundles_ahead *a, const struct packet *p)
{
    const struct importer *im = p->m->im;
    if (a->file == im->stable_first || !importer_bytes_stable(im, p->bytes.p)) /* 0: there is no such file */
        return;
    const uint8_t *next = p->bytes.p + p->bytes.len;
    const uint8_t *end = (const uint8_t *)im->stable_first + im->stable_len;
    stop_thread(a);
    a->file = im->stable_first;
    if (importer_threads(im) < 2 || (!im->opt.threads && end - next < WORTH_A_THREAD))
        return;
    a->packets = pb_cursor(slice_of(next, (size_t)(end - next)));
    a->reader = next;
    a->stop = false;
    a->waits_with = NULL;
    a->owed = 0;
    a->running = pthread_create(&a->thread, NULL, split_ahead, a) == 0;
}

static struct bundles_ahead *make(void)
{
    struct bundles_ahead *a = mem_zalloc(sizeof *a);
    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->moved, NULL);
    pthread_cond_init(&a->split, NULL);
    return a;
}

/* With the lock held: what the thread has of this bundle, NULL when nothing. */
static struct bundle_split *find(struct bundles_ahead *a, struct slice bundle)
{
    while (a->taken < a->claimed) {
        struct bundle_split *s = &a->ring[a->taken % RING];
        if (s->bytes.p > bundle.p)
            return NULL;
        while (a->done <= a->taken)
            pthread_cond_wait(&a->split, &a->lock);
        if (s->bytes.p == bundle.p)
            return s;
        bundle_split_clear(s); /* the reader was there before */
        a->taken++;
    }
    return NULL;
}

struct bundle_split *bundles_ahead_take(const struct packet *p)
{
    struct importer *im = p->m->im;
    struct bundle_split *s = NULL;
    if (!im->bundles_ahead)
        im->bundles_ahead = make();
    struct bundles_ahead *a = im->bundles_ahead;
    if (!a)
        return NULL;
    begin_file(a, p);
    if (a->running && importer_bytes_stable(im, p->bytes.p)) {
        pthread_mutex_lock(&a->lock);
        a->reader = p->bytes.p + p->bytes.len;
        s = find(a, p->field);
        pthread_mutex_unlock(&a->lock);
    }
    if (s)
        return s;
    a->own.bytes = p->field;
    bundle_split(&a->own);
    return &a->own;
}

void bundles_ahead_drop(struct importer *im, struct bundle_split *s)
{
    struct bundles_ahead *a = im->bundles_ahead;
    bundle_split_clear(s);
    if (!a->running)
        return;
    pthread_mutex_lock(&a->lock);
    a->taken += s != &a->own;
    wake_when_there_is_room(a);
    pthread_mutex_unlock(&a->lock);
}

void bundles_ahead_end(struct importer *im)
{
    struct bundles_ahead *a = im->bundles_ahead;
    if (!a)
        return;
    stop_thread(a);
    bundle_split_free(&a->own);
    for (unsigned i = 0; i < RING; i++)
        bundle_split_free(&a->ring[i]);
    pthread_cond_destroy(&a->split);
    pthread_cond_destroy(&a->moved);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
    im->bundles_ahead = NULL;
}
