/* Sequences and their incremental state. */
#include "importer/core/sequence.h"

#include "base/hash.h"
#include "base/probe.h"
#include "wire/fields.h"

/* One interned message. */
struct interned_entry {
    uint64_t iid;
    struct slice bytes; /* the whole entry message; p NULL: free slot */
    uint32_t field;     /* of InternedData */
    strid text;         /* what interned_string() found, 0 when not asked yet */
};

/* What track events name by numbers that count up from 1: found by the number itself, once it has been looked up. */
enum { DENSE_NAMES, DENSE_CATEGORIES, DENSE_FIELDS };
struct dense {
    strid *text; /* by iid; 0: not looked up yet */
    uint32_t n;
};

/* Open addressing over (field, iid); shared by generations until the next clear. */
struct interned {
    struct interned_entry *slots;
    uint32_t cap; /* a power of two, 0 when empty */
    uint32_t n;
    uint64_t seed; /* of the hashes; 0 until entries crowd */
    struct dense dense[DENSE_FIELDS];
};

static struct dense *dense_of(struct interned *t, uint32_t field)
{
    return field == INTERNED_DATA_EVENT_NAMES        ? &t->dense[DENSE_NAMES]
           : field == INTERNED_DATA_EVENT_CATEGORIES ? &t->dense[DENSE_CATEGORIES]
                                                     : NULL;
}

/* Numbers far beyond the entries that there are get no place: memory goes by the input. False when it ran out. */
static bool dense_put(const struct interned *t, struct dense *d, uint64_t iid, strid text)
{
    if (iid >= t->cap)
        return true;
    if (iid >= d->n) {
        strid *grown = mem_realloc(d->text, t->cap * sizeof *grown);
        if (!grown)
            return false;
        memset(grown + d->n, 0, (t->cap - d->n) * sizeof *grown);
        *d = (struct dense){grown, t->cap};
    }
    d->text[iid] = text;
    return true;
}

static uint32_t hash_of(const struct interned *t, uint32_t field, uint64_t iid)
{
    return (uint32_t)hash_combine(iid ^ t->seed, field);
}

static struct interned_entry *probe(const struct interned *t, uint32_t field, uint64_t iid)
{
    uint32_t at;
    probe_each(at, hash_of(t, field, iid), t->cap,
               t->slots[at].bytes.p) if (t->slots[at].iid == iid && t->slots[at].field == field) break;
    return &t->slots[at];
}

static bool resize(struct interned *t, uint32_t cap)
{
    struct interned_entry *slots = cap ? mem_zalloc(cap * sizeof *slots) : NULL;
    if (!slots)
        return false;
    struct interned old = *t;
    t->slots = slots;
    t->cap = cap;
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.slots[i].bytes.p)
            *probe(t, old.slots[i].field, old.slots[i].iid) = old.slots[i];
    mem_free(old.slots);
    return true;
}

/* The free slot that a walk for a new entry ended at, or another one, if entries were chosen to belong into one place
 * (base/hash.h). NULL when out of memory. */
static struct interned_entry *uncrowded(struct interned *t, struct interned_entry *free, uint32_t field, uint64_t iid)
{
    uint32_t walk = (uint32_t)(free - t->slots) - hash_of(t, field, iid);
    if ((walk & (t->cap - 1)) < HASH_WALK_MAX || t->seed)
        return free;
    t->seed = hash_secret();
    return resize(t, t->cap) ? probe(t, field, iid) : NULL;
}

static struct interned_entry *lookup(const struct seq_generation *g, uint32_t field, uint64_t iid)
{
    if (!g->interned || !g->interned->cap)
        return NULL;
    struct interned_entry *e = probe(g->interned, field, iid);
    return e->bytes.p ? e : NULL;
}

/* Counts that something names what nothing has explained (spec: perf_sampling.md §9). */
static void count_missing(const struct seq_generation *g)
{
    struct machine_ctx *m = g->machine;
    if (!m->im->finished)
        stats_add(&m->im->st->stats, m->id, STAT_interned_data_tokenizer_errors, 1);
}

struct slice interned_find(const struct seq_generation *g, uint32_t field, uint64_t iid)
{
    const struct interned_entry *e = lookup(g, field, iid);
    if (!e)
        count_missing(g);
    return e ? e->bytes : slice_of(NULL, 0);
}

strid interned_string(struct seq_generation *g, uint32_t field, uint64_t iid, uint32_t payload_field)
{
    struct dense *d = g->interned ? dense_of(g->interned, field) : NULL;
    if (d && iid < d->n && d->text[iid])
        return d->text[iid];
    struct interned_entry *e = lookup(g, field, iid);
    if (!e) {
        count_missing(g);
        return 0;
    }
    if (!e->text) {
        struct pb_field f;
        if (pb_find(e->bytes, payload_field, &f))
            e->text = import_slice(g->machine->im, pb_bytes(&f));
    }
    if (d && e->text && !dense_put(g->interned, d, iid, e->text))
        g->machine->im->failed = true;
    return e->text;
}

struct sequences *sequences_open(struct machine_ctx *m)
{
    struct importer *im = m->im;
    struct sequences *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->m = m;
    s->input = im->input.serial;
    s->clock_file = im->input.clock_file;
    if (im->input.private_clock) {
        s->default_clock = CLOCK_ID_TRACE_FILE;
    } else if (m->id != im->input.base_machine) { /* a remote machine starts with the host's clock */
        const struct sequences *host = im->machines.p[im->input.base_machine]->sequences;
        s->default_clock = host && host->input == s->input ? host->default_clock : 0;
    }
    return s;
}

struct sequences *machine_sequences(struct machine_ctx *m)
{
    if (m->sequences->input == m->im->input.serial)
        return m->sequences;
    struct sequences *s = sequences_open(m);
    if (!s) {
        m->im->failed = true;
        return NULL;
    }
    s->older = m->sequences;
    return m->sequences = s;
}

void sequences_finish(struct sequences *s)
{
    for (; s; s = s->older) {
        size_t at = 0;
        for (const struct u64map_slot *slot; (slot = u64map_next(&s->by_id, &at)) != NULL;) {
            struct sequence *seq = (struct sequence *)(uintptr_t)slot->value;
            if (seq->losses > seq->losses_told)
                stats_add_idx(&s->m->st->stats, s->m->id, STAT_sequence_packet_loss_unlisted, (int32_t)seq->id,
                              seq->losses - seq->losses_told);
            seq->losses_told = seq->losses;
        }
    }
}

static void close_one(struct sequences *s)
{
    for (size_t i = 0; i < s->tables.n; i++) {
        for (size_t k = 0; k < DENSE_FIELDS; k++)
            mem_free(s->tables.p[i]->dense[k].text);
        mem_free(s->tables.p[i]->slots);
        mem_free(s->tables.p[i]);
    }
    vec_free(&s->tables);
    u64map_free(&s->by_id);
    arena_free(&s->arena);
    mem_free(s);
}

void sequences_close(struct sequences *s)
{
    for (struct sequences *older; s; s = older) {
        older = s->older;
        close_one(s);
    }
}

struct seq_generation *generation_at(const struct importer *im, uint32_t index)
{
    return im->generations.p[index];
}

/* A generation of `seq` after `before` (NULL: the first), made current. */
static struct seq_generation *add_generation(struct sequences *s, struct sequence *seq)
{
    struct seq_generation *g = arena_zalloc(&s->arena, sizeof *g);
    if (!g)
        return NULL;
    g->machine = s->m;
    g->seq = seq;
    g->input = s->input;
    g->clock_file = s->clock_file;
    struct importer *im = s->m->im;
    g->index = g->state = (uint32_t)im->generations.n;
    return im->generations.n < UINT32_MAX && vec_push(&im->generations, g) ? g : NULL;
}

bool sequences_has(const struct sequences *s, uint32_t id)
{
    return u64map_get(&s->by_id, id) != NULL;
}

struct sequence *sequences_find(struct sequences *s, uint32_t id)
{
    uint64_t *slot = u64map_put(&s->by_id, id, NULL);
    struct sequence *seq = slot ? (struct sequence *)(uintptr_t)*slot : NULL;
    if (slot && !seq) {
        seq = arena_zalloc(&s->arena, sizeof *seq);
        if (seq) {
            seq->id = id;
            seq->gen = add_generation(s, seq);
        }
        if (!seq || !seq->gen) {
            u64map_del(&s->by_id, id);
            seq = NULL;
        } else {
            *slot = (uint64_t)(uintptr_t)seq;
        }
    }
    if (!seq)
        s->m->im->failed = true;
    else
        s->recent[id % SEQUENCES_RECENT] = seq;
    return seq;
}

bool sequence_clear(struct sequences *s, struct sequence *seq)
{
    struct seq_generation *g = add_generation(s, seq);
    if (!g) {
        s->m->im->failed = true;
        return false;
    }
    seq->gen = g;
    seq->valid = true;
    seq->clears++;
    return true;
}

void sequence_lost(struct sequence *seq)
{
    seq->valid = false;
}

/* Bytes that may be looked at until the end of the import. */
static struct slice keep(struct sequences *s, struct slice bytes)
{
    if (!bytes.len || importer_bytes_stable(s->m->im, bytes.p))
        return bytes;
    uint8_t *copy = arena_alloc_bytes(&s->arena, bytes.len);
    if (!copy)
        return slice_of(NULL, 0);
    memcpy(copy, bytes.p, bytes.len);
    return slice_of(copy, bytes.len);
}

bool sequence_set_defaults(struct sequences *s, struct sequence *seq, struct slice defaults)
{
    struct seq_generation *g = add_generation(s, seq);
    struct slice kept = keep(s, defaults);
    if (!g || (!kept.p && defaults.len)) {
        s->m->im->failed = true;
        return false;
    }
    g->interned = seq->gen->interned;
    g->state = seq->gen->state;
    g->defaults = kept;
    struct pb_field f;
    struct pb_cursor c = pb_cursor(kept);
    while (pb_next(&c, &f))
        if (f.id == TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID) /* TracePacketDefaults.timestamp_clock_id */
            g->default_clock = pb_u32(&f);
    seq->gen = g;
    return true;
}

static struct interned *own_table(struct sequences *s, struct sequence *seq)
{
    struct interned *t = seq->gen->interned;
    if (t)
        return t;
    t = mem_zalloc(sizeof *t);
    if (!t || !vec_push(&s->tables, t)) {
        mem_free(t);
        return NULL;
    }
    return seq->gen->interned = t;
}

bool sequence_intern(struct sequences *s, struct sequence *seq, struct slice interned_data)
{
    struct importer *im = s->m->im;
    struct interned *t = own_table(s, seq);
    struct slice kept = keep(s, interned_data);
    if (!t || (!kept.p && interned_data.len)) {
        im->failed = true;
        return false;
    }
    struct pb_cursor c = pb_cursor(kept);
    struct pb_field f, iid;
    while (pb_next(&c, &f)) {
        if (f.wire != PB_BYTES || !f.p)
            continue;
        if (!pb_find(pb_bytes(&f), INTERNED_STRING_IID, &iid)) { /* every interned message has its iid in field 1 */
            stats_add(&im->st->stats, s->m->id, STAT_interned_data_tokenizer_errors, 1);
            continue;
        }
        if (t->n * 4 >= t->cap * 3 && !resize(t, t->cap ? t->cap * 2 : 32)) {
            im->failed = true;
            return false;
        }
        struct interned_entry *e = probe(t, f.id, pb_u64(&iid));
        if (e->bytes.p)
            continue;
        e = uncrowded(t, e, f.id, pb_u64(&iid));
        if (!e) {
            im->failed = true;
            return false;
        }
        *e = (struct interned_entry){.iid = pb_u64(&iid), .bytes = pb_bytes(&f), .field = f.id};
        t->n++;
    }
    if (c.bad)
        stats_add(&im->st->stats, s->m->id, STAT_interned_data_tokenizer_errors, 1);
    return true;
}
