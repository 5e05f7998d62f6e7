/* Owns DeobfuscationMapping: the names that an application had before they were shortened, put beside those of frames,
 * classes and fields.
 *
 * The same short names mean something else in each application, so what has a name is looked up under its package: that
 * of the file it lies in, else that of the process it was seen in. This happens once everything has been read. */
#include "importer/profiling/heap_graph.h"

#include "base/hash.h"
#include "wire/fields.h"

enum {
    MAX_NAME = 4096,
    ROOM_PER_BYTE = 64, /* of a mapping, whose members stand below a class named once */
    UIDS_PER_USER = 100000,
};

/* package << 32 | short name -> long name */
struct names {
    struct u64map classes, members, methods;
};

struct deobfuscation {
    struct profiling_machine *s;
    struct machine_ctx *m;
    struct strpool *strings;
    size_t room; /* bytes of names that may yet be put together */
    struct names names;
    struct u64map frame_package; /* frame -> package of a process that runs it */
    struct u64map class_package; /* heap_graph_class -> package */
    struct u64map visited;       /* callsites: their frames, and those of their callers, have a package */
};

enum tokenize_result deobfuscation_tokenize(struct packet *p)
{
    struct profiling_machine *s = p->m->profiling;
    struct slice kept = profiling_keep(s, p->field);
    if (kept.len && !vec_push(&s->obfuscation_maps, kept))
        p->m->im->failed = true;
    return TOKENIZE_DONE;
}

static uint64_t name_key(strid package, strid name)
{
    return (uint64_t)package << 32 | name;
}

static void set(struct deobfuscation *d, struct u64map *map, uint64_t key, uint64_t value)
{
    if (!u64map_set(map, key, value))
        d->m->im->failed = true;
}

static strid get(const struct u64map *map, uint64_t key)
{
    const uint64_t *v = u64map_get(map, key);
    return v ? (strid)*v : 0;
}

/* --- reading the mappings ----------------------------------------------------------------------------------------- */

static struct slice text_field(struct slice message, uint32_t id)
{
    struct pb_field f;
    return pb_find(message, id, &f) ? pb_bytes(&f) : slice_of("", 0);
}

/* 0 when it is longer than a name, or more than mappings of this size can mean. */
static strid joined(struct deobfuscation *d, struct slice a, const char *between, struct slice b)
{
    if (a.len > MAX_NAME || b.len > MAX_NAME || a.len + b.len > d->room)
        return 0;
    d->room -= a.len + b.len;
    return strpool_printf(d->strings, "%.*s%s%.*s", (int)a.len, (const char *)a.p, between, (int)b.len,
                          (const char *)b.p);
}

/* A member's long name says its class itself when it came from another one. Several methods may share a short name:
 * then any of them may be meant. */
static void read_member(struct deobfuscation *d, struct u64map *map, strid package, struct slice class_message,
                        struct slice member)
{
    struct slice to = text_field(member, OBFUSCATED_MEMBER_DEOBFUSCATED_NAME);
    bool qualified = to.len && memchr(to.p, '.', to.len);
    strid from = joined(d, text_field(class_message, OBFUSCATED_CLASS_OBFUSCATED_NAME), ".",
                        text_field(member, OBFUSCATED_MEMBER_OBFUSCATED_NAME));
    strid name = qualified ? strpool_intern(d->strings, to.p, to.len)
                           : joined(d, text_field(class_message, OBFUSCATED_CLASS_DEOBFUSCATED_NAME), ".", to);
    strid other = get(map, name_key(package, from));
    if (other && other != name)
        name = joined(d, strpool_view(d->strings, other), " | ", strpool_view(d->strings, name));
    if (from && name)
        set(d, map, name_key(package, from), name);
}

static void read_mapping(struct deobfuscation *d, struct slice mapping)
{
    struct slice package_name = text_field(mapping, DEOBFUSCATION_MAPPING_PACKAGE_NAME);
    strid package = strpool_intern(d->strings, package_name.p, package_name.len);
    struct pb_cursor c = pb_cursor(mapping);
    struct pb_field f, g;
    d->room += ROOM_PER_BYTE * mapping.len;
    while (pb_next(&c, &f)) {
        if (f.id != DEOBFUSCATION_MAPPING_OBFUSCATED_CLASSES)
            continue;
        struct slice class_message = pb_bytes(&f), from = text_field(class_message, OBFUSCATED_CLASS_OBFUSCATED_NAME),
                     to = text_field(class_message, OBFUSCATED_CLASS_DEOBFUSCATED_NAME);
        set(d, &d->names.classes, name_key(package, strpool_intern(d->strings, from.p, from.len)),
            strpool_intern(d->strings, to.p, to.len));
        struct pb_cursor members = pb_sub(&f);
        while (pb_next(&members, &g)) {
            if (g.id == OBFUSCATED_CLASS_OBFUSCATED_MEMBERS)
                read_member(d, &d->names.members, package, class_message, pb_bytes(&g));
            else if (g.id == OBFUSCATED_CLASS_OBFUSCATED_METHODS)
                read_member(d, &d->names.methods, package, class_message, pb_bytes(&g));
        }
    }
}

/* --- which package ------------------------------------------------------------------------------------------------ */

/* The package of a process: of its uid, when only one has it; else what its name says. */
static strid package_of_process(const struct deobfuscation *d, uint32_t upid)
{
    struct storage *st = d->m->st;
    int64_t uid = ROW_GET(st, process, uid, upid);
    strid package = 0;
    if (uid != COL_NULL && !(package = get(&d->s->uid_package, (uint64_t)uid)))
        package = get(&d->s->uid_package, (uint64_t)(uid % UIDS_PER_USER));
    if (package)
        return package;
    struct slice name = strpool_view(d->strings, (strid)ROW_GET(st, process, name, upid));
    const uint8_t *colon = name.len ? memchr(name.p, ':', name.len) : NULL; /* "package:service" */
    return strpool_find(d->strings, name.p, colon ? (size_t)(colon - name.p) : name.len);
}

static strid package_of_file(const struct deobfuscation *d, strid path)
{
    bool bad = false;
    strid package = package_of_path(d->m, strpool_view(d->strings, path), &bad);
    if (bad)
        stats_add(&d->m->st->stats, d->m->id, STAT_deobfuscate_location_parse_error, 1);
    return package;
}

/* The frames of a stack run in the process's package. */
static void note_stack(struct deobfuscation *d, int64_t upid, int64_t callsite)
{
    struct storage *st = d->m->st;
    if (upid == COL_NULL || ROW_GET(st, process, machine_id, (uint32_t)upid) != d->m->id)
        return;
    strid package = package_of_process(d, (uint32_t)upid);
    while (package && callsite != COL_NULL) {
        bool added = false;
        if (!u64map_put(&d->visited, (uint64_t)callsite, &added))
            d->m->im->failed = true;
        if (!added)
            return;
        uint64_t frame = (uint64_t)ROW_GET(st, stack_profile_callsite, frame_id, (uint32_t)callsite);
        uint64_t *slot = u64map_put(&d->frame_package, frame, &added);
        if (!slot)
            d->m->im->failed = true;
        else if (added)
            *slot = package;
        callsite = ROW_GET(st, stack_profile_callsite, parent_id, (uint32_t)callsite);
    }
}

static void note_stacks(struct deobfuscation *d)
{
    struct storage *st = d->m->st;
    for (uint32_t i = 0; i < st->t[T_profiler_sample].n_rows; i++) {
        int64_t task = ROW_GET(st, profiler_sample, task_context_id, i);
        if (task != COL_NULL)
            note_stack(d, ROW_GET(st, profiler_task_context, upid, (uint32_t)task),
                       ROW_GET(st, profiler_sample, callsite_id, i));
    }
    for (uint32_t i = 0; i < st->t[T_heap_profile_allocation].n_rows; i++)
        note_stack(d, ROW_GET(st, heap_profile_allocation, upid, i),
                   ROW_GET(st, heap_profile_allocation, callsite_id, i));
    for (uint32_t i = 0; i < st->t[T_heap_graph_thread_callsite].n_rows; i++)
        note_stack(d,
                   ROW_GET(st, heap_graph, upid, (uint32_t)ROW_GET(st, heap_graph_thread_callsite, heap_graph_id, i)),
                   ROW_GET(st, heap_graph_thread_callsite, callsite_id, i));
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static void name_frames(struct deobfuscation *d)
{
    struct storage *st = d->m->st;
    struct u64map_slot *slot;
    for (size_t it = 0; (slot = u64map_next(&d->s->frames, &it));) {
        uint32_t frame = (uint32_t)slot->value;
        uint32_t mapping = (uint32_t)ROW_GET(st, stack_profile_frame, mapping, frame);
        strid package = package_of_file(d, (strid)ROW_GET(st, stack_profile_mapping, name, mapping));
        if (!package)
            package = get(&d->frame_package, frame);
        strid name = get(&d->names.methods, name_key(package, (strid)ROW_GET(st, stack_profile_frame, name, frame)));
        if (name)
            ROW_SET(st, stack_profile_frame, deobfuscated_name, frame, name);
    }
}

static void name_class(struct deobfuscation *d, uint32_t class_row, strid process_package)
{
    struct storage *st = d->m->st;
    strid package = package_of_file(d, (strid)ROW_GET(st, heap_graph_class, location, class_row));
    if (!package)
        package = process_package;
    set(d, &d->class_package, class_row, package);
    struct slice name = strpool_view(d->strings, (strid)ROW_GET(st, heap_graph_class, name, class_row));
    if (name.len > MAX_NAME)
        return;
    struct slice bare = java_bare_class(name);
    strid to = get(&d->names.classes, name_key(package, strpool_find(d->strings, bare.p, bare.len)));
    if (!to || strpool_view(d->strings, to).len > MAX_NAME)
        return;
    size_t before = (size_t)(bare.p - name.p), after = before + bare.len;
    strid whole = strpool_printf(d->strings, "%.*s%s%.*s", (int)before, (const char *)name.p,
                                 strpool_cstr(d->strings, to), (int)(name.len - after), (const char *)name.p + after);
    ROW_SET(st, heap_graph_class, deobfuscated_name, class_row, whole);
}

static void name_heap(struct deobfuscation *d, const struct heap_graphs *all, const struct graph_rows *graph)
{
    struct storage *st = d->m->st;
    strid package = package_of_process(d, graph->upid);
    for (uint32_t i = 0; i < graph->n_class_uses; i++)
        if (all->class_uses.p[graph->first_class_use + i] != UINT32_MAX)
            name_class(d, all->class_uses.p[graph->first_class_use + i], package);
    for (uint32_t i = graph->first_reference; i < graph->first_reference + graph->n_references; i++) {
        uint32_t owner = (uint32_t)ROW_GET(st, heap_graph_reference, owner_id, i);
        strid of = get(&d->class_package, (uint64_t)ROW_GET(st, heap_graph_object, type_id, owner));
        strid name = get(&d->names.members,
                         name_key(of ? of : package, (strid)ROW_GET(st, heap_graph_reference, field_name, i)));
        if (name)
            ROW_SET(st, heap_graph_reference, deobfuscated_field_name, i, name);
    }
}

void deobfuscation_finish(struct profiling_machine *s)
{
    struct profiling_machine *host = s->m->im->machines.p[0]->profiling;
    struct deobfuscation d = {.s = s, .m = s->m, .strings = &s->m->st->strings};
    for (size_t i = 0; i < s->obfuscation_maps.n; i++)
        read_mapping(&d, s->obfuscation_maps.p[i]);
    for (size_t i = 0; host != s && i < host->obfuscation_maps.n; i++) /* tools that add mappings name no machine */
        read_mapping(&d, host->obfuscation_maps.p[i]);
    /* Rows refer to each other only when none was lost for want of memory. */
    if (d.names.classes.n && !s->m->im->failed && !storage_failed(s->m->st)) {
        note_stacks(&d);
        name_frames(&d);
        for (size_t i = 0; s->graphs && i < s->graphs->done.n; i++)
            name_heap(&d, s->graphs, &s->graphs->done.p[i]);
    }
    u64map_free(&d.names.classes);
    u64map_free(&d.names.members);
    u64map_free(&d.names.methods);
    u64map_free(&d.frame_package);
    u64map_free(&d.class_package);
    u64map_free(&d.visited);
}
