/* Asynchronous slices: b, e, n. An identity keeps its track; what has the same name shares a set of tracks. */
#include "base/hash.h"
#include "importer/json/chrome_json.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_compressor.h"

struct chrome_async {
    struct u64map identities; /* hash -> index into sets */
    VEC(uint32_t)
    sets; /* of tracks */
};

void chrome_async_close(struct chrome_async *a)
{
    if (!a)
        return;
    u64map_free(&a->identities);
    vec_free(&a->sets);
    mem_free(a);
}

static uint32_t new_set(struct chrome *c, const struct chrome_event *e, bool local, uint32_t upid)
{
    struct args *args = &c->im->st->args;
    struct arg_list source = {0};
    struct track_dim dims[3];
    struct track_spec spec = {.type = local ? "legacy_async_process_slice" : "legacy_async_global_slice",
                              .event_type = TRACK_SLICE,
                              .name = e->name,
                              .parent = UINT32_MAX,
                              .dims = dims};
    if (local)
        dims[spec.n_dims++] = (struct track_dim){"upid", DIM_INT, upid};
    dims[spec.n_dims++] = (struct track_dim){"scope", DIM_STR, 0};
    dims[spec.n_dims++] = (struct track_dim){"name", DIM_STR, e->name};
    arg_list_str(args, &source, "source", import_str(c->im, "chrome"));
    arg_list_bool(args, &source, "trace_id_is_process_scoped", local);
    arg_list_int(args, &source, "upid", upid);
    arg_list_str(args, &source, "source_scope", 0);
    spec.source_args = args_intern(args, source.p, source.n);
    arg_list_free(&source);
    return track_set_intern(c->im->tracks, c->m->id, &spec);
}

/* The number of the event's identity, made when new; UINT32_MAX when out of memory. */
static uint32_t identity(struct chrome *c, const struct chrome_event *e, uint32_t upid)
{
    bool local = false, added;
    const struct chrome_id *id = &e->id;
    if (id->kind == CHROME_NO_ID)
        id = &e->id2_global;
    if (id->kind == CHROME_NO_ID) {
        id = &e->id2_local;
        local = true;
    }
    if (!c->async && !(c->async = mem_zalloc(sizeof *c->async)))
        return UINT32_MAX;
    uint64_t kind = (uint64_t)id->kind << 1 | local;
    uint64_t key =
        hash_combine(hash_keyed(c->im->secret, (uint64_t)id->value, kind << 32 | e->cat), local ? upid : UPID_NONE);
    uint64_t *v = u64map_put(&c->async->identities, key, &added);
    if (!v)
        return UINT32_MAX;
    if (added) {
        *v = c->async->sets.n;
        if (!vec_push(&c->async->sets, new_set(c, e, local, upid)))
            return UINT32_MAX;
    }
    return (uint32_t)*v;
}

void chrome_async_event(struct chrome *c, struct chrome_event *e)
{
    struct chrome_thread *t = chrome_thread_of(c, e->thread);
    bool has_id = e->id.kind || e->id2_global.kind || e->id2_local.kind;
    if (!has_id || !(e->flags & CHROME_HAS_PID)) {
        chrome_event_error(c, STAT_json_parser_failure, e);
        return;
    }
    uint32_t who = identity(c, e, t->upid);
    if (who == UINT32_MAX) {
        c->im->failed = true;
        return;
    }
    struct track_tracker *tracks = c->im->tracks;
    uint32_t set = c->async->sets.p[who], slice;
    if (e->phase == 'e') {
        uint32_t track = track_set_end(tracks, set, who);
        slice = slice_end(c->im->slices, c->m->id, e->ts, track, e->cat, e->name, NULL);
        if (slice != SLICE_NONE)
            chrome_add_args(c, e, slice);
        return;
    }
    uint32_t track = track_set_begin(tracks, set, who);
    argset args = chrome_args_set(c, e);
    if (e->phase == 'b') {
        slice = slice_begin(c->im->slices, c->m->id, e->ts, track, e->cat, chrome_name(c, e), args);
    } else {
        slice = slice_scoped(c->im->slices, c->m->id, e->ts, track, e->cat, e->name, 0, args);
        track_set_end(tracks, set, who);
    }
    chrome_bind(c, e, slice);
}
