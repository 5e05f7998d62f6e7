/* Keeps events that wait for their turn: packed into bytes, in chunks that go when all in them were taken. */
#include "importer/json/chrome_json.h"

enum {
    CHUNK_BYTES = 1 << 18,
    MOST_BYTES = 160, /* of a record */
};

struct chunk {
    uint8_t *bytes;
    uint32_t live;
};

struct chrome_records {
    VEC(struct chunk)
    chunks;
    size_t used; /* of the last one */
};

struct chrome_records *chrome_records_open(void)
{
    return mem_zalloc(sizeof(struct chrome_records));
}

void chrome_records_close(struct chrome_records *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->chunks.n; i++)
        mem_free(r->chunks.p[i].bytes);
    vec_free(&r->chunks);
    mem_free(r);
}

static inline uint8_t *put(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static inline const uint8_t *take(const uint8_t *p, uint64_t *v)
{
    uint64_t out = *p & 0x7f;
    for (unsigned shift = 7; *p++ & 0x80; shift += 7)
        out |= (uint64_t)(*p & 0x7f) << shift;
    *v = out;
    return p;
}

static inline uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

static uint8_t *put_id(uint8_t *p, const struct chrome_id *id)
{
    *p++ = id->kind;
    return id->kind == CHROME_NO_ID ? p : put(p, zigzag(id->value));
}

static const uint8_t *take_id(const uint8_t *p, struct chrome_id *id)
{
    uint64_t v;
    id->kind = *p++;
    if (id->kind != CHROME_NO_ID) {
        p = take(p, &v);
        id->value = unzigzag(v);
    }
    return p;
}

uint64_t chrome_record_put(struct chrome_records *r, const struct chrome_event *e, const uint8_t *base)
{
    if (!r->chunks.n || r->used > CHUNK_BYTES - MOST_BYTES) {
        struct chunk c = {.bytes = mem_alloc(CHUNK_BYTES)};
        if (!c.bytes || !vec_push(&r->chunks, c)) {
            mem_free(c.bytes);
            return UINT64_MAX;
        }
        r->used = 0;
    }
    struct chunk *c = vec_last(&r->chunks);
    uint8_t *start = c->bytes + r->used, *p = start;
    uint32_t flags = e->flags | (e->name ? CHROME_HAS_NAME : 0) | (e->cat ? CHROME_HAS_CAT : 0);
    *p++ = (uint8_t)e->phase;
    *p++ = (uint8_t)e->scope;
    p = put(p, flags);
    p = put(p, e->thread);
    if (e->name)
        p = put(p, e->name);
    if (e->cat)
        p = put(p, e->cat);
    if (flags & CHROME_HAS_DUR)
        p = put(p, zigzag(e->dur));
    if (flags & CHROME_HAS_TTS)
        p = put(p, zigzag(e->tts));
    if (flags & CHROME_HAS_TDUR)
        p = put(p, zigzag(e->tdur));
    if (flags & CHROME_HAS_ARGS) {
        p = put(p, (uint64_t)((uintptr_t)e->args.p - (uintptr_t)base));
        p = put(p, e->args.len);
    }
    if (flags & CHROME_HAS_IDS) {
        p = put_id(p, &e->id);
        p = put_id(p, &e->id2_global);
        p = put_id(p, &e->id2_local);
        p = put_id(p, &e->bind_id);
    }
    c->live++;
    uint64_t address = (uint64_t)(r->chunks.n - 1) * CHUNK_BYTES + r->used;
    r->used += (size_t)(p - start);
    return address;
}

void chrome_record_take(struct chrome_records *r, uint64_t address, const uint8_t *base, struct chrome_event *e)
{
    struct chunk *c = &r->chunks.p[address / CHUNK_BYTES];
    const uint8_t *p = c->bytes + address % CHUNK_BYTES;
    uint64_t v;
    e->phase = (char)*p++;
    e->scope = (char)*p++;
    p = take(p, &v);
    e->flags = (uint32_t)v;
    p = take(p, &v);
    e->thread = (uint32_t)v;
    e->name = e->cat = 0;
    e->dur = -1;
    e->tts = e->tdur = COL_NULL;
    if (e->flags & CHROME_HAS_NAME) {
        p = take(p, &v);
        e->name = (strid)v;
    }
    if (e->flags & CHROME_HAS_CAT) {
        p = take(p, &v);
        e->cat = (strid)v;
    }
    if (e->flags & CHROME_HAS_DUR) {
        p = take(p, &v);
        e->dur = unzigzag(v);
    }
    if (e->flags & CHROME_HAS_TTS) {
        p = take(p, &v);
        e->tts = unzigzag(v);
    }
    if (e->flags & CHROME_HAS_TDUR) {
        p = take(p, &v);
        e->tdur = unzigzag(v);
    }
    e->args = slice_of(NULL, 0);
    if (e->flags & CHROME_HAS_ARGS) {
        p = take(p, &v);
        e->args.p = (const uint8_t *)((uintptr_t)base + (uintptr_t)v);
        p = take(p, &v);
        e->args.len = v;
    }
    e->id.kind = e->id2_global.kind = e->id2_local.kind = e->bind_id.kind = CHROME_NO_ID;
    if (e->flags & CHROME_HAS_IDS) {
        p = take_id(p, &e->id);
        p = take_id(p, &e->id2_global);
        p = take_id(p, &e->id2_local);
        take_id(p, &e->bind_id);
    }
    if (--c->live == 0 && c != vec_last(&r->chunks)) {
        mem_free(c->bytes);
        c->bytes = NULL;
    }
}
