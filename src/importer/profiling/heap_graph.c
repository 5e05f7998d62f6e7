/* Imports HeapGraph packets: objects, types, fields and roots of a managed heap, gathered until the dump is whole. */
#include "importer/profiling/heap_graph.h"

#include "base/hash.h"
#include "wire/fields.h"

enum { MAX_KIND = 11, MAX_ROOT_TYPE = 14, MAX_HEAP_TYPE = 3 };

static struct heap_graphs *graphs_of(struct profiling_machine *s)
{
    if (!s->graphs && !(s->graphs = mem_zalloc(sizeof *s->graphs)))
        s->m->im->failed = true;
    return s->graphs;
}

static struct heap_graph *graph_of(struct profiling_machine *s, const struct sequence *seq)
{
    struct heap_graphs *all = graphs_of(s);
    uint64_t *at = all ? u64map_put(&all->by_sequence, (uint64_t)(uintptr_t)seq, NULL) : NULL;
    if (at && !*at && vec_add(&all->graphs)) {
        *at = all->graphs.n;
        vec_last(&all->graphs)->heap_size = COL_NULL;
    }
    if (!at || !*at) {
        s->m->im->failed = true;
        return NULL;
    }
    return &all->graphs.p[*at - 1];
}

static void count(struct packet *p, enum stat_key stat, uint32_t upid)
{
    stats_add_idx(&p->m->st->stats, p->m->id, stat, (int32_t)upid, 1);
}

/* Appends the values of a repeated number; `base` is added to those that are not 0. False when the bytes are damaged or
 * memory is out. */
static bool push_numbers(struct number_list *list, struct slice message, uint32_t field, uint64_t base)
{
    struct pb_numbers numbers = pb_numbers(message, field);
    for (uint64_t v; pb_next_number(&numbers, &v);)
        if (!vec_push(list, v ? v + base : 0))
            return false;
    return !numbers.message.bad;
}

/* True when the packet goes on with the dump that is being gathered, or begins one. */
static bool same_dump(struct packet *p, struct heap_graph *g, uint32_t upid)
{
    if (!g->begun) {
        g->begun = true;
        g->ts = p->ts;
        g->upid = upid;
    }
    return g->ts == p->ts && g->upid == upid;
}

static void add_object(struct packet *p, struct heap_graph *g, struct slice bytes)
{
    struct graph_object o = {.registry_size = COL_NULL,
                             .heap_type = g->last_heap_type,
                             .first_ref = g->refs.n,
                             .first_field = g->field_ids.n};
    struct graph_bitmap bitmap = {{COL_NULL, COL_NULL, COL_NULL, COL_NULL}};
    bool is_bitmap = false;
    uint64_t base = 0;
    struct pb_field f;
    if (pb_find(bytes, HEAP_GRAPH_OBJECT_REFERENCE_FIELD_ID_BASE,
                &f)) /* called reference_field_id_base, but meant for objects */
        base = pb_u64(&f);
    struct pb_cursor c = pb_cursor(bytes);
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case HEAP_GRAPH_OBJECT_ID:
            o.id = pb_u64(&f);
            break;
        case HEAP_GRAPH_OBJECT_TYPE_ID:
            o.type_id = pb_u64(&f);
            break;
        case HEAP_GRAPH_OBJECT_SELF_SIZE:
            o.self_size = pb_u64(&f);
            break;
        case HEAP_GRAPH_OBJECT_ID_DELTA:
            o.id = g->last_object_id + pb_u64(&f);
            break;
        case HEAP_GRAPH_OBJECT_NATIVE_ALLOCATION_REGISTRY_SIZE_FIELD:
            o.registry_size = pb_i64(&f);
            break;
        case HEAP_GRAPH_OBJECT_HEAP_TYPE_DELTA:
            o.heap_type = (uint8_t)(pb_u64(&f) <= MAX_HEAP_TYPE ? pb_u64(&f) : 0);
            break;
        case HEAP_GRAPH_OBJECT_BITMAP_ID_FIELD:
        case HEAP_GRAPH_OBJECT_BITMAP_SOURCE_ID_FIELD:
        case HEAP_GRAPH_OBJECT_BITMAP_WIDTH_FIELD:
        case HEAP_GRAPH_OBJECT_BITMAP_HEIGHT_FIELD:
            bitmap.field[f.id - HEAP_GRAPH_OBJECT_BITMAP_ID_FIELD] = pb_i64(&f);
            is_bitmap = true;
            break;
        }
    }
    bool ok = push_numbers(&g->field_ids, bytes, 4, 0) && push_numbers(&g->refs, bytes, 5, base);
    o.n_fields = g->field_ids.n - o.first_field;
    o.first_internal = g->refs.n;
    ok = ok && push_numbers(&g->refs, bytes, 10, 0);
    o.n_refs = g->refs.n - o.first_ref;
    if (!ok || (o.n_fields && o.n_fields != o.first_internal - o.first_ref)) {
        count(p, STAT_heap_graph_malformed_packet, g->upid);
        return;
    }
    if (is_bitmap && vec_push(&g->bitmaps, bitmap))
        o.bitmap = (uint32_t)g->bitmaps.n;
    p->m->im->failed |= is_bitmap && !o.bitmap;
    g->last_object_id = o.id;
    g->last_heap_type = o.heap_type;
    graph_add_object(p->m->profiling, g, o);
}

/* Remembers that number `id` means the newest element, unless it has a meaning already. */
static bool is_new(struct packet *p, struct u64map *map, uint64_t id, uint64_t value)
{
    bool added = false;
    uint64_t *slot = u64map_put(map, id, &added);
    if (!slot)
        p->m->im->failed = true;
    else if (added)
        *slot = value;
    return added;
}

/* A type that is told again is what was told last. */
static void tell_type(struct packet *p, struct heap_graph *g, const struct graph_type *t)
{
    bool added = false;
    uint64_t *at = u64map_put(&g->type_of, t->id, &added);
    if (at && added && vec_add(&g->types))
        *at = g->types.n;
    if (!at || !*at) {
        p->m->im->failed = true;
        return;
    }
    g->types.p[*at - 1] = *t;
}

static void add_type(struct packet *p, struct heap_graph *g, struct slice bytes)
{
    struct graph_type t = {.first_field = g->field_ids.n};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case HEAP_GRAPH_TYPE_ID:
            t.id = pb_u64(&f);
            break;
        case HEAP_GRAPH_TYPE_LOCATION_ID:
            t.location_id = pb_u64(&f);
            t.has_location = true;
            break;
        case HEAP_GRAPH_TYPE_CLASS_NAME:
            t.name = import_slice(p->m->im, pb_bytes(&f));
            break;
        case HEAP_GRAPH_TYPE_OBJECT_SIZE:
            t.object_size = pb_u64(&f);
            break;
        case HEAP_GRAPH_TYPE_SUPERCLASS_ID:
            t.superclass_id = pb_u64(&f);
            break;
        case HEAP_GRAPH_TYPE_KIND:
            t.kind = (uint8_t)(pb_u64(&f) <= MAX_KIND ? pb_u64(&f) : 0);
            break;
        case HEAP_GRAPH_TYPE_CLASSLOADER_ID:
            t.classloader_id = pb_u64(&f);
            break;
        }
    }
    bool ok = push_numbers(&g->field_ids, bytes, 6, 0);
    t.n_fields = g->field_ids.n - t.first_field;
    if (!ok) {
        count(p, STAT_heap_graph_malformed_packet, g->upid);
        return;
    }
    tell_type(p, g, &t);
}

/* An InternedString. */
static struct slice numbered_string(const struct pb_field *f, uint64_t *iid)
{
    struct pb_field g;
    *iid = pb_find(pb_bytes(f), INTERNED_STRING_IID, &g) ? pb_u64(&g) : 0;
    return pb_find(pb_bytes(f), INTERNED_STRING_STR, &g) ? pb_bytes(&g) : slice_of("", 0);
}

/* "int a.b": what the field holds, and its name with the class; the older kind has the name only. */
static void add_field(struct packet *p, struct heap_graph *g, const struct pb_field *f)
{
    uint64_t iid;
    struct slice text = numbered_string(f, &iid), type = {0};
    const uint8_t *space = text.len ? memchr(text.p, ' ', text.len) : NULL;
    if (space) {
        type = slice_of(text.p, (size_t)(space - text.p));
        text = slice_of(space + 1, text.len - type.len - 1);
    }
    struct graph_field field = {space ? import_slice(p->m->im, type) : 0, import_slice(p->m->im, text)};
    if (is_new(p, &g->field_of, iid, g->fields.n + 1) && !vec_push(&g->fields, field))
        p->m->im->failed = true;
}

static void add_roots(struct packet *p, struct heap_graph *g, struct slice bytes)
{
    struct pb_field f;
    uint8_t type = 0;
    if (pb_find(bytes, HEAP_GRAPH_ROOT_ROOT_TYPE, &f) && pb_u64(&f) <= MAX_ROOT_TYPE)
        type = (uint8_t)pb_u64(&f);
    struct pb_numbers objects = pb_numbers(bytes, HEAP_GRAPH_ROOT_OBJECT_IDS);
    for (uint64_t id; pb_next_number(&objects, &id);)
        if (!vec_push(&g->roots, (struct graph_root){id, type}))
            p->m->im->failed = true;
    if (objects.message.bad)
        count(p, STAT_heap_graph_malformed_packet, g->upid);
}

static void check_index(struct packet *p, struct heap_graph *g, uint64_t index)
{
    if (index != (g->has_index ? g->last_index + 1 : 0)) {
        count(p, STAT_heap_graph_missing_packet, g->begun ? g->upid : 0);
        g->truncated = true;
    }
    g->last_index = index;
    g->has_index = true;
}

void heap_graph_free(struct heap_graph *g)
{
    vec_free(&g->objects);
    vec_free(&g->types);
    vec_free(&g->fields);
    vec_free(&g->roots);
    vec_free(&g->bitmaps);
    vec_free(&g->heap_names);
    vec_free(&g->places);
    vec_free(&g->refs);
    vec_free(&g->field_ids);
    u64map_free(&g->type_of);
    u64map_free(&g->field_of);
    u64map_free(&g->location_of);
    u64map_free(&g->place_of);
    u64map_free(&g->class_of);
    *g = (struct heap_graph){.heap_size = COL_NULL};
}

void heap_graph_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct heap_graph *g = graph_of(m->profiling, p->gen->seq);
    struct pb_field f;
    if (!g)
        return;
    uint32_t upid = process_tracker_process(m->processes, pb_find(p->field, HEAP_GRAPH_PID, &f) ? pb_i32(&f) : 0);
    bool continued = false;
    check_index(p, g, pb_find(p->field, HEAP_GRAPH_INDEX, &f) ? pb_u64(&f) : 0);
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        uint64_t iid;
        struct slice text;
        switch (f.id) {
        case HEAP_GRAPH_OBJECTS:
        case HEAP_GRAPH_ROOTS:
            if (!same_dump(p, g, upid))
                stats_add(&m->st->stats, m->id, STAT_heap_graph_non_finalized_graph, 1);
            else if (f.id == HEAP_GRAPH_OBJECTS)
                add_object(p, g, pb_bytes(&f));
            else
                add_roots(p, g, pb_bytes(&f));
            break;
        case HEAP_GRAPH_TYPE_NAMES: /* a type as the first recorders told it */
            text = numbered_string(&f, &iid);
            tell_type(p, g, &(struct graph_type){.id = iid, .name = import_slice(m->im, text)});
            break;
        case HEAP_GRAPH_FIELD_NAMES:
            add_field(p, g, &f);
            break;
        case HEAP_GRAPH_CONTINUED:
            continued = pb_bool(&f);
            break;
        case HEAP_GRAPH_LOCATION_NAMES:
            text = numbered_string(&f, &iid);
            is_new(p, &g->location_of, iid, import_slice(m->im, text));
            break;
        case HEAP_GRAPH_TYPES:
            add_type(p, g, pb_bytes(&f));
            break;
        case HEAP_GRAPH_HEAP_BYTES_ALLOCATED:
            g->heap_size = pb_i64(&f);
            break;
        }
    }
    if (c.bad)
        count(p, STAT_heap_graph_malformed_packet, upid);
    if (continued)
        return;
    if (g->begun)
        heap_graph_tables(m->profiling, m->profiling->graphs, g);
    heap_graph_free(g);
}

void heap_graph_of_file(struct profiling_machine *s, struct heap_graph *g)
{
    struct heap_graphs *all = graphs_of(s);
    g->of_file = true;
    if (all)
        heap_graph_tables(s, all, g);
}

uint32_t heap_graph_row(struct profiling_machine *s, int64_t ts, uint32_t upid)
{
    struct heap_graphs *all = graphs_of(s);
    bool added = false;
    uint64_t *row = all ? u64map_put(&all->rows, hash_keyed(s->secret, (uint64_t)ts, upid), &added) : NULL;
    if (!row) {
        s->m->im->failed = true;
        return UINT32_MAX;
    }
    if (added)
        *row = heap_graph_insert(s->m->st, &(struct heap_graph_row){.ts = ts, .upid = upid, .heap_size = COL_NULL});
    return (uint32_t)*row;
}

void heap_graph_finish(struct profiling_machine *s)
{
    bool unfinished = false;
    for (size_t i = 0; s->graphs && i < s->graphs->graphs.n; i++) {
        struct heap_graph *g = &s->graphs->graphs.p[i];
        if (!g->begun)
            continue;
        unfinished = true;
        heap_graph_tables(s, s->graphs, g);
        heap_graph_free(g);
    }
    if (unfinished) /* counts once, however many there are */
        stats_add(&s->m->st->stats, s->m->id, STAT_heap_graph_non_finalized_graph, 1);
}

void heap_graph_close(struct heap_graphs *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->graphs.n; i++)
        heap_graph_free(&all->graphs.p[i]);
    u64map_free(&all->by_sequence);
    vec_free(&all->graphs);
    u64map_free(&all->rows);
    vec_free(&all->done);
    vec_free(&all->class_uses);
    vec_free(&all->reference_ranges);
    mem_free(all);
}
