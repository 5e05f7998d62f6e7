/* Hands out chunks and collects commits. */
#include "capture/shm/arbiter.h"

#include "base/vec.h"
#include "capture/ipc/ports.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define COMMIT_MAX  (128u * 1024 - 512) /* one request fits a frame of 128 KiB */
#define PATCH_SLACK 128                 /* bytes that are free where one more patch is put */
#define MAX_STALLS  300                 /* waits for a free chunk, then the writer gives up */

struct move {
    uint16_t page;
    uint8_t chunk;
    bool incomplete;
    uint16_t target_buffer;
    uint8_t *copy; /* a scraped chunk (emulation): mem_alloc()ed, `size` bytes */
    uint32_t size, filled;
};

struct pending_patch {
    uint16_t target_buffer, writer_id;
    struct shm_patch patch;
    uint64_t behind; /* moves that were asked for before it: its chunk is one of them, its packet's last one is not */
};

struct writer_note {
    uint16_t id, target_buffer;
    bool gone;
};

struct shm_arbiter {
    pthread_mutex_t lock;
    atomic_int refs;
    atomic_bool shut;
    struct shm_region region;
    uint32_t page_size;
    unsigned n_pages;
    bool emulated;
    uint16_t *scraped; /* emulation: a bit for each chunk of a page that the service has a copy of */
    enum shm_layout layout;
    const struct shm_arbiter_ops *ops;
    void *ctx;
    unsigned next_page; /* where the last free chunk was found */
    unsigned out;       /* chunks in the hands of writers */
    VEC(struct move) moves;
    uint64_t moved; /* that are not in `moves` any more */
    VEC(struct pending_patch) patches;
    VEC(struct writer_note) notes;
    size_t n_registrations; /* notes that are not yet sent and not `gone` */
    size_t pending_bytes;
    uint64_t flush_id;
    uint64_t whole_until; /* to be told; 0: nothing new */
    bool finished;        /* likewise */
    bool ends;            /* no chunk is handed out any more */
    uint64_t used_ids[(SHM_MAX_WRITER_ID + 64) / 64];
    uint16_t target_of[SHM_MAX_WRITER_ID + 1]; /* target buffer by writer id */
    uint16_t last_id;
};

struct shm_arbiter *shm_arbiter_new(struct shm_region *region, uint32_t page_size, bool emulated,
                                    enum shm_layout layout, const struct shm_arbiter_ops *ops, void *ctx)
{
    struct shm_arbiter *a = mem_zalloc(sizeof *a);
    uint16_t *scraped = a && emulated ? mem_zalloc(region->size / page_size * sizeof *scraped) : NULL;
    if (!a || (emulated && !scraped)) {
        mem_free(a);
        return NULL;
    }
    a->scraped = scraped;
    pthread_mutex_init(&a->lock, NULL);
    atomic_init(&a->refs, 1);
    a->region = *region;
    *region = (struct shm_region){.fd = -1};
    a->page_size = page_size;
    a->n_pages = (unsigned)(a->region.size / page_size);
    a->emulated = emulated;
    a->layout = layout;
    a->ops = ops;
    a->ctx = ctx;
    return a;
}

struct shm_arbiter *shm_arbiter_ref(struct shm_arbiter *a)
{
    atomic_fetch_add(&a->refs, 1);
    return a;
}

void shm_arbiter_unref(struct shm_arbiter *a)
{
    if (!a || atomic_fetch_sub(&a->refs, 1) != 1)
        return;
    for (size_t i = 0; i < a->moves.n; i++)
        mem_free(a->moves.p[i].copy);
    vec_free(&a->moves);
    vec_free(&a->patches);
    vec_free(&a->notes);
    mem_free(a->scraped);
    shm_region_close(&a->region);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}

void shm_arbiter_shut(struct shm_arbiter *a)
{
    pthread_mutex_lock(&a->lock);
    atomic_store(&a->shut, true);
    pthread_mutex_unlock(&a->lock);
}

static struct shm_page_header *page_at(struct shm_arbiter *a, unsigned page)
{
    return (struct shm_page_header *)(void *)(a->region.p + (size_t)page * a->page_size);
}

static uint8_t *chunk_at(struct shm_arbiter *a, unsigned page, unsigned chunk, uint32_t *size)
{
    unsigned n = shm_layout_chunks(atomic_load_explicit(&page_at(a, page)->bitmap, memory_order_relaxed));
    *size = shm_chunk_size(a->page_size, n ? n : 1);
    return (uint8_t *)page_at(a, page) + SHM_PAGE_HEADER + (size_t)chunk * *size;
}

static void wake(struct shm_arbiter *a, bool urgent)
{
    if (!atomic_load(&a->shut))
        a->ops->wake(a->ctx, urgent);
}

uint16_t shm_arbiter_new_writer_id(struct shm_arbiter *a, uint16_t target_buffer)
{
    uint16_t id = 0;
    pthread_mutex_lock(&a->lock);
    for (unsigned i = 0; i < SHM_MAX_WRITER_ID && !id; i++) {
        unsigned try = (a->last_id + i) % SHM_MAX_WRITER_ID + 1;
        if (!(a->used_ids[try / 64] >> (try % 64) & 1))
            id = (uint16_t)try;
    }
    if (id && vec_push(&a->notes, (struct writer_note){id, target_buffer, false})) {
        a->used_ids[id / 64] |= 1ull << (id % 64);
        a->target_of[id] = target_buffer;
        a->last_id = id;
        a->n_registrations++;
    } else {
        id = 0;
    }
    pthread_mutex_unlock(&a->lock);
    if (id)
        wake(a, false);
    return id;
}

void shm_arbiter_free_writer_id(struct shm_arbiter *a, uint16_t id)
{
    pthread_mutex_lock(&a->lock);
    a->used_ids[id / 64] &= ~(1ull << (id % 64));
    (void)vec_push(&a->notes, (struct writer_note){id, 0, true}); /* a lost goodbye only costs the service a number */
    pthread_mutex_unlock(&a->lock);
    wake(a, false);
}

/* The layout of a fresh page: whole pages as long as most are free, smaller chunks when many writers share few pages. A
 * thread with several stalling writers would otherwise wait for chunks that it holds itself. */
static uint32_t fresh_layout(const struct shm_arbiter *a)
{
    uint32_t layout = (uint32_t)a->layout;
    if (!layout)
        layout = a->out * 2 <= a->n_pages ? SHM_DIV1 : a->out * 4 <= a->n_pages * 3 ? SHM_DIV4 : SHM_DIV14;
    return layout << SHM_LAYOUT_SHIFT;
}

/* A free chunk of page `page`, giving the page a layout when it has none. */
static bool take_from_page(struct shm_arbiter *a, unsigned page, struct shm_chunk *c)
{
    struct shm_page_header *h = page_at(a, page);
    uint32_t bitmap = atomic_load_explicit(&h->bitmap, memory_order_acquire);
    if (!shm_layout_chunks(bitmap)) {
        uint32_t none = 0, layout = fresh_layout(a);
        if (!atomic_compare_exchange_strong(&h->bitmap, &none, layout))
            return false;
        bitmap = layout;
    }
    unsigned n = shm_layout_chunks(bitmap);
    for (unsigned i = 0; i < n; i++) {
        /* the service may free the last chunk meanwhile, and the page its layout: then the transition fails */
        if (shm_state(bitmap, i) != SHM_FREE || !shm_transition(h, i, SHM_FREE, SHM_BEING_WRITTEN))
            continue;
        c->size = shm_chunk_size(a->page_size, n);
        c->p = (uint8_t *)h + SHM_PAGE_HEADER + (size_t)i * c->size;
        c->page = (uint16_t)page;
        c->index = (uint8_t)i;
        return true;
    }
    return false;
}

static bool try_get(struct shm_arbiter *a, struct shm_chunk *c)
{
    bool ok = false;
    pthread_mutex_lock(&a->lock);
    a->out++;
    if (!atomic_load(&a->shut) && !a->ends &&
        vec_reserve(&a->moves, a->moves.n + a->out)) { /* so that returning it cannot fail */
        for (unsigned i = 0; i < a->n_pages && !ok; i++) {
            unsigned page = (a->next_page + i) % a->n_pages;
            ok = take_from_page(a, page, c);
            if (ok)
                a->next_page = page;
        }
        c->scarce = a->out * 4 > a->n_pages;
    }
    if (!ok)
        a->out--;
    pthread_mutex_unlock(&a->lock);
    return ok;
}

static bool ends(struct shm_arbiter *a)
{
    pthread_mutex_lock(&a->lock);
    bool yes = a->ends;
    pthread_mutex_unlock(&a->lock);
    return yes;
}

bool shm_arbiter_get_chunk(struct shm_arbiter *a, uint32_t chunk_id, uint16_t writer_id, uint16_t packets,
                           enum shm_policy policy, struct shm_chunk *c)
{
    unsigned stalls = 0;
    long wait_us = 0;
    while (!try_get(a, c)) {
        if (atomic_load(&a->shut) || ends(a) || policy == SHM_DROP || policy == SHM_POLICY_DEFAULT)
            return false;
        a->ops->stalled(a->ctx);
        if (stalls++ == MAX_STALLS) {
            if (policy == SHM_STALL_THEN_ABORT)
                abort(); /* what this policy asks for */
            return false;
        }
        struct timespec ts = {0, wait_us * 1000};
        if (wait_us)
            nanosleep(&ts, NULL);
        else
            sched_yield();
        wait_us = (wait_us + 1) * 8 < 100000 ? (wait_us + 1) * 8 : 100000;
    }
    struct shm_chunk_header *h = (struct shm_chunk_header *)(void *)c->p;
    c->id = chunk_id;
    atomic_store_explicit(&shm_late_footer(c->p, c->size)->magic, 0, memory_order_relaxed); /* of an earlier chunk */
    c->p[SHM_CHUNK_HEADER] = 0; /* of a fragment that is counted from the start: not whole yet */
    atomic_store_explicit(&h->chunk_id, chunk_id, memory_order_relaxed);
    atomic_store_explicit(&h->writer_id, writer_id, memory_order_relaxed);
    atomic_store_explicit(&h->packets, packets, memory_order_release);
    if (a->emulated) /* what comes into it is to be handed over in time */
        wake(a, false);
    return true;
}

unsigned shm_arbiter_chunks_out(struct shm_arbiter *a)
{
    pthread_mutex_lock(&a->lock);
    unsigned n = a->out;
    pthread_mutex_unlock(&a->lock);
    return n;
}

void shm_arbiter_return_chunk(struct shm_arbiter *a, struct shm_chunk *c, uint32_t filled, uint16_t target_buffer)
{
    shm_transition(page_at(a, c->page), c->index, SHM_BEING_WRITTEN, SHM_COMPLETE);
    pthread_mutex_lock(&a->lock);
    a->out--;
    a->moves.p[a->moves.n++] = (struct move){c->page, c->index, false, target_buffer, NULL, c->size, filled};
    a->pending_bytes += c->size;
    bool urgent = a->pending_bytes >= a->region.size / 2;
    pthread_mutex_unlock(&a->lock);
    c->p = NULL;
    wake(a, urgent);
}

void shm_arbiter_add_patches(struct shm_arbiter *a, uint16_t target_buffer, uint16_t writer_id,
                             const struct shm_patch *patches, size_t n)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < n; i++) /* out of memory: the chunk stays unpatched, which the service counts */
        (void)vec_push(&a->patches,
                       (struct pending_patch){target_buffer, writer_id, patches[i], a->moved + a->moves.n});
    pthread_mutex_unlock(&a->lock);
    wake(a, false);
}

void shm_arbiter_ack_flush(struct shm_arbiter *a, uint64_t request_id)
{
    pthread_mutex_lock(&a->lock);
    if (request_id > a->flush_id)
        a->flush_id = request_id;
    pthread_mutex_unlock(&a->lock);
    wake(a, false);
}

void shm_arbiter_whole_until(struct shm_arbiter *a, uint64_t boottime_ns)
{
    pthread_mutex_lock(&a->lock);
    a->whole_until = boottime_ns;
    pthread_mutex_unlock(&a->lock);
}

void shm_arbiter_finish(struct shm_arbiter *a)
{
    pthread_mutex_lock(&a->lock);
    a->ends = true;
    a->finished = !a->out;
    pthread_mutex_unlock(&a->lock);
}

void shm_arbiter_scrape(struct shm_arbiter *a)
{
    if (!a->emulated)
        return;
    pthread_mutex_lock(&a->lock);
    for (unsigned page = 0; page < a->n_pages; page++) {
        uint32_t bitmap = atomic_load_explicit(&page_at(a, page)->bitmap, memory_order_acquire);
        for (unsigned i = 0; i < shm_layout_chunks(bitmap); i++) {
            uint32_t size;
            uint8_t *p = chunk_at(a, page, i, &size);
            struct shm_chunk_header *h = (struct shm_chunk_header *)(void *)p;
            if (shm_state(bitmap, i) != SHM_BEING_WRITTEN)
                continue;
            uint16_t packets = atomic_load_explicit(&h->packets, memory_order_acquire);
            uint16_t writer = atomic_load_explicit(&h->writer_id, memory_order_relaxed);
            if ((packets & SHM_COUNT_MASK) < 2 || writer > SHM_MAX_WRITER_ID) /* the last packet is never whole */
                continue;
            uint8_t *copy = mem_alloc(size);
            if (!copy)
                continue;
            memcpy(copy, p, size);
            memcpy(copy + 6, &packets, sizeof packets);
            if (!vec_reserve(&a->moves, a->moves.n + a->out + 1)) {
                mem_free(copy);
                continue;
            }
            a->scraped[page] |= (uint16_t)(1u << i);
            a->moves.p[a->moves.n++] =
                (struct move){(uint16_t)page, (uint8_t)i, true, a->target_of[writer], copy, size, size};
        }
    }
    pthread_mutex_unlock(&a->lock);
    wake(a, false);
}

static void free_chunk(struct shm_arbiter *a, const struct move *m, uint8_t *p)
{
    a->scraped[m->page] &= (uint16_t) ~(1u << m->chunk);
    memset(p, 0, SHM_CHUNK_HEADER);
    shm_transition(page_at(a, m->page), m->chunk, SHM_COMPLETE, SHM_FREE);
}

/* What was never filled is not sent. A chunk that was scraped keeps its size: the service stores it where its copy is.
 */
static uint32_t size_to_send(const struct shm_arbiter *a, const struct move *m)
{
    uint32_t size = (m->filled + 3) & ~3u;
    return a->scraped[m->page] >> m->chunk & 1 || size > m->size ? m->size : size;
}

/* Bytes that the patches take at most which are to go with the next moves, or before: `n` counts them. Behind a chunk
 * whose packet is finished nothing tells the lengths any more, should this process be killed: they go with it. */
static size_t due_bytes(const struct shm_arbiter *a, uint64_t moves, size_t *n)
{
    enum { ENTRY_BYTES = 64 };
    while (*n < a->patches.n && a->patches.p[*n].behind <= moves)
        ++*n;
    return *n ? PATCH_SLACK + *n * ENTRY_BYTES : 0;
}

/* Puts moves until the request is full. */
static void put_moves(struct shm_arbiter *a, struct pb_writer *w, size_t start)
{
    size_t i = 0, n_due = 0;
    for (; i < a->moves.n; i++) {
        struct move *m = &a->moves.p[i];
        uint32_t size = m->size, unused;
        uint8_t *p = m->copy ? m->copy : a->emulated ? chunk_at(a, m->page, m->chunk, &unused) : NULL;
        if (p && !m->copy)
            size = size_to_send(a, m);
        if (w->n - start + (p ? size : 0) + 32 + due_bytes(a, a->moved + i, &n_due) > COMMIT_MAX)
            break;
        uint8_t head[32];
        size_t n = 0;
        head[n++] = COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_PAGE << 3;
        n += pb_encode_varint(head + n, m->page);
        head[n++] = COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_CHUNK << 3;
        n += pb_encode_varint(head + n, m->chunk);
        head[n++] = COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_TARGET_BUFFER << 3;
        n += pb_encode_varint(head + n, m->target_buffer);
        if (p) {
            head[n++] = COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_DATA << 3 | PB_BYTES;
            n += pb_encode_varint(head + n, size);
        } else {
            n += pb_encode_varint(head + n, (uint64_t)MOVE_FIELD_FILLED << 3);
            n += pb_encode_varint(head + n, m->filled);
        }
        pb_put_raw_varint(w, COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE << 3 | PB_BYTES);
        pb_put_raw_varint(w, n + (p ? size : 0) + (m->incomplete ? 2 : 0));
        pb_put_raw(w, head, n);
        if (p)
            pb_put_raw(w, p, size);
        if (m->incomplete)
            pb_put_varint(w, COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_CHUNK_INCOMPLETE, 1);
        if (p && !m->copy)
            free_chunk(a, m, p);
        if (!m->copy)
            a->pending_bytes -= m->size;
        mem_free(m->copy);
    }
    if (i) {
        memmove(a->moves.p, a->moves.p + i, (a->moves.n - i) * sizeof *a->moves.p);
        a->moves.n -= i;
        a->moved += i;
    }
}

static bool same_chunk(const struct pending_patch *a, const struct pending_patch *b)
{
    return a->writer_id == b->writer_id && a->target_buffer == b->target_buffer &&
           a->patch.chunk_id == b->patch.chunk_id;
}

/* Puts patches of chunks that were moved: none overtakes its chunk. */
static void put_patches(struct shm_arbiter *a, struct pb_writer *w, size_t start)
{
    size_t i = 0;
    while (i < a->patches.n && a->patches.p[i].behind <= a->moved && w->n - start + PATCH_SLACK < COMMIT_MAX) {
        size_t n = 1;
        while (i + n < a->patches.n && n < 1024 && same_chunk(&a->patches.p[i], &a->patches.p[i + n]) &&
               w->n - start + 64 + n * 16 < COMMIT_MAX)
            n++;
        const struct pending_patch *first = &a->patches.p[i];
        struct pb_writer entry = {0};
        pb_put_varint(&entry, COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_TARGET_BUFFER, first->target_buffer);
        pb_put_varint(&entry, COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_WRITER_ID, first->writer_id);
        pb_put_varint(&entry, COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_CHUNK_ID, first->patch.chunk_id);
        for (size_t k = 0; k < n; k++) {
            uint8_t buf[16];
            size_t len = 0;
            buf[len++] = COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_PATCH_OFFSET << 3;
            len += pb_encode_varint(buf + len, first[k].patch.offset);
            buf[len++] = COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_PATCH_DATA << 3 | PB_BYTES;
            buf[len++] = 4;
            memcpy(buf + len, first[k].patch.bytes, 4);
            pb_put_bytes(&entry, COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_PATCHES, buf, len + 4);
        }
        if (!first[n - 1].patch.last_of_chunk)
            pb_put_varint(&entry, COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_HAS_MORE_PATCHES, 1);
        pb_put_bytes(w, COMMIT_DATA_REQUEST_CHUNKS_TO_PATCH, entry.p, entry.n);
        w->failed |= entry.failed;
        pb_writer_free(&entry);
        i += n;
    }
    if (i) {
        memmove(a->patches.p, a->patches.p + i, (a->patches.n - i) * sizeof *a->patches.p);
        a->patches.n -= i;
    }
}

static enum shm_ipc put_note(struct shm_arbiter *a, struct pb_writer *w, size_t i)
{
    struct writer_note n = a->notes.p[i];
    memmove(&a->notes.p[i], &a->notes.p[i + 1], (a->notes.n - i - 1) * sizeof n);
    a->notes.n--;
    pb_put_varint(w, REGISTER_TRACE_WRITER_REQUEST_TRACE_WRITER_ID, n.id);
    if (n.gone)
        return SHM_IPC_UNREGISTER_WRITER;
    pb_put_varint(w, REGISTER_TRACE_WRITER_REQUEST_TARGET_BUFFER, n.target_buffer);
    a->n_registrations--;
    return SHM_IPC_REGISTER_WRITER;
}

enum shm_ipc shm_arbiter_next_commit(struct shm_arbiter *a, struct pb_writer *w)
{
    enum shm_ipc kind = SHM_IPC_NONE;
    size_t start = w->n;
    pthread_mutex_lock(&a->lock);
    if (atomic_load(&a->shut)) {
        /* nobody to tell */
    } else if (a->n_registrations) { /* before the first chunk of the writer; goodbyes in front keep their turn */
        kind = put_note(a, w, 0);
    } else if (a->moves.n || a->patches.n || a->flush_id || a->whole_until || a->finished) {
        kind = SHM_IPC_COMMIT;
        put_moves(a, w, start);
        put_patches(a, w, start);
        if (!a->moves.n && !a->patches.n && a->whole_until) {
            pb_put_varint(w, COMMIT_FIELD_WHOLE_UNTIL, a->whole_until);
            a->whole_until = 0;
        }
        if (!a->moves.n && !a->patches.n && a->finished) {
            pb_put_varint(w, COMMIT_FIELD_FINISHED, 1);
            a->finished = false;
        }
        if (!a->moves.n && !a->patches.n && a->flush_id) {
            pb_put_varint(w, COMMIT_DATA_REQUEST_FLUSH_REQUEST_ID, a->flush_id);
            a->flush_id = 0;
        }
    } else if (a->notes.n) {
        kind = put_note(a, w, 0);
    }
    pthread_mutex_unlock(&a->lock);
    return kind;
}
