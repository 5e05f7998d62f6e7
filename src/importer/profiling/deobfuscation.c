/* Imports DeobfuscationMapping: the names that an application had before they were shortened, put beside those of
 * frames, classes and fields.
 *
 * The same short names mean something else in each application, so what has a name is looked up under its package: that
 * of the file it lies in, else that of the process it was seen in. This happens once everything has been read. */
#include "importer/profiling/heap_graph.h"

#include "base/compare.h"
#include "base/hash.h"
#include "wire/fields.h"

#include <stdlib.h>

enum {
    MAX_NAME = 4096,
    ROOM_PER_BYTE = 64, /* of a mapping, whose members stand below a class named once */
};

struct method {
    strid name;
    uint32_t next;               /* index + 1; 0: the last */
    uint32_t packet;             /* that told of it: a later one takes the place of an earlier one */
    int64_t first, last;         /* lines of the shortened file, COL_NULL: any */
    int64_t source, source_last; /* the same lines in the file that they come from */
};

/* package << 32 | short name -> long name; classes and fields are there without a package (0), too */
struct names {
    struct u64map classes, members;
    struct u64map methods; /* -> first << 32 | last of `all_methods`, each + 1: those that share a short name */
    VEC(struct method)
    all_methods;
};

struct deobfuscation {
    struct profiling_machine *s;
    struct machine_ctx *m;
    struct strpool *strings;
    size_t room;     /* bytes of names that may yet be put together */
    uint32_t packet; /* number of the mapping that is read */
    struct names names;
    struct u64map frame_package; /* frame -> package of a process that runs it */
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

/* A member's long name says its class itself when it came from another one. */
static strid member_name(struct deobfuscation *d, struct slice class_message, struct slice member)
{
    struct slice to = text_field(member, OBFUSCATED_MEMBER_DEOBFUSCATED_NAME);
    bool qualified = to.len && memchr(to.p, '.', to.len);
    return qualified ? strpool_intern(d->strings, to.p, to.len)
                     : joined(d, text_field(class_message, OBFUSCATED_CLASS_DEOBFUSCATED_NAME), ".", to);
}

static int64_t line_field(struct slice member, uint32_t id)
{
    struct pb_field f;
    return pb_find(member, id, &f) ? (int64_t)pb_u32(&f) : COL_NULL;
}

static void add_method(struct deobfuscation *d, uint64_t key, const struct method *method)
{
    uint64_t *list = u64map_put(&d->names.methods, key, NULL);
    if (!list || d->names.all_methods.n >= UINT32_MAX - 1 || !vec_push(&d->names.all_methods, *method)) {
        d->m->im->failed = true;
        return;
    }
    uint32_t at = (uint32_t)d->names.all_methods.n;
    struct method *before = *list ? &d->names.all_methods.p[(uint32_t)*list - 1] : NULL;
    bool same = before && before->packet == method->packet;
    if (same)
        before->next = at;
    *list = (same ? *list >> 32 : at) << 32 | at;
}

/* Both are also found without their package: fields whatever their class, methods in memory that no file names. Methods
 * of no package are nobody's. */
static void read_member(struct deobfuscation *d, bool is_method, strid package, struct slice class_message,
                        struct slice member)
{
    strid from = joined(d, text_field(class_message, OBFUSCATED_CLASS_OBFUSCATED_NAME), ".",
                        text_field(member, OBFUSCATED_MEMBER_OBFUSCATED_NAME));
    struct method method = {.name = member_name(d, class_message, member),
                            .first = line_field(member, OBFUSCATED_MEMBER_OBFUSCATED_LINE_START),
                            .last = line_field(member, OBFUSCATED_MEMBER_OBFUSCATED_LINE_END),
                            .source = line_field(member, OBFUSCATED_MEMBER_SOURCE_LINE_START),
                            .source_last = line_field(member, OBFUSCATED_MEMBER_SOURCE_LINE_END),
                            .packet = d->packet};
    if (!from || !method.name || (is_method && !package))
        return;
    if (is_method) {
        add_method(d, name_key(package, from), &method);
        add_method(d, name_key(0, from), &method);
        return;
    }
    set(d, &d->names.members, name_key(package, from), method.name);
    set(d, &d->names.members, name_key(0, from), method.name);
}

static void read_mapping(struct deobfuscation *d, struct slice mapping)
{
    struct slice package_name = text_field(mapping, DEOBFUSCATION_MAPPING_PACKAGE_NAME);
    strid package = package_name.len ? strpool_intern(d->strings, package_name.p, package_name.len) : 0;
    struct pb_cursor c = pb_cursor(mapping);
    struct pb_field f, g;
    d->packet++;
    d->room += ROOM_PER_BYTE * mapping.len;
    while (pb_next(&c, &f)) {
        if (f.id != DEOBFUSCATION_MAPPING_OBFUSCATED_CLASSES)
            continue;
        struct slice class_message = pb_bytes(&f), from = text_field(class_message, OBFUSCATED_CLASS_OBFUSCATED_NAME),
                     to = text_field(class_message, OBFUSCATED_CLASS_DEOBFUSCATED_NAME);
        strid from_name = strpool_intern(d->strings, from.p, from.len);
        set(d, &d->names.classes, name_key(package, from_name), strpool_intern(d->strings, to.p, to.len));
        set(d, &d->names.classes, name_key(0, from_name), strpool_intern(d->strings, to.p, to.len));
        struct pb_cursor members = pb_sub(&f);
        while (pb_next(&members, &g)) {
            if (g.id == OBFUSCATED_CLASS_OBFUSCATED_MEMBERS)
                read_member(d, false, package, class_message, pb_bytes(&g));
            else if (g.id == OBFUSCATED_CLASS_OBFUSCATED_METHODS)
                read_member(d, true, package, class_message, pb_bytes(&g));
        }
    }
}

/* --- which package ------------------------------------------------------------------------------------------------ */

/* The package of a process: the first that runs under its uid. */
static strid package_of_process(const struct deobfuscation *d, uint32_t upid)
{
    int64_t app = ROW_GET(d->m->st, process, android_appid, upid);
    return app == COL_NULL ? 0 : get(&d->s->uid_package, (uint64_t)app);
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

/* A frame of several packages is that of the first that tells: allocations do before samples. */
static void note_stacks(struct deobfuscation *d)
{
    struct storage *st = d->m->st;
    for (uint32_t i = 0; i < st->t[T_heap_profile_allocation].n_rows; i++)
        note_stack(d, ROW_GET(st, heap_profile_allocation, upid, i),
                   ROW_GET(st, heap_profile_allocation, callsite_id, i));
    for (uint32_t i = 0; i < st->t[T_profiler_sample].n_rows; i++) {
        int64_t task = ROW_GET(st, profiler_sample, task_context_id, i);
        if (task != COL_NULL)
            note_stack(d, ROW_GET(st, profiler_task_context, upid, (uint32_t)task),
                       ROW_GET(st, profiler_sample, callsite_id, i));
    }
    for (uint32_t i = 0; i < st->t[T_heap_graph_thread_callsite].n_rows; i++)
        note_stack(d,
                   ROW_GET(st, heap_graph, upid, (uint32_t)ROW_GET(st, heap_graph_thread_callsite, heap_graph_id, i)),
                   ROW_GET(st, heap_graph_thread_callsite, callsite_id, i));
}

/* --- names -------------------------------------------------------------------------------------------------------- */

enum { MAX_METHODS = 64 /* of one short name: more are left out */ };

struct methods {
    const struct method *p[MAX_METHODS];
    size_t n;
};

/* The methods that a short name may mean, on a line (COL_NULL: any), in the order of the mapping. */
static void find_methods(const struct deobfuscation *d, uint64_t key, int64_t line, struct methods *out)
{
    const uint64_t *list = u64map_get(&d->names.methods, key);
    out->n = 0;
    for (uint32_t at = list ? (uint32_t)(*list >> 32) : 0; at && out->n < MAX_METHODS;) {
        const struct method *m = &d->names.all_methods.p[at - 1];
        at = m->next;
        if (line == COL_NULL ||
            ((m->first == COL_NULL || line >= m->first) && (m->last == COL_NULL || line <= m->last)))
            out->p[out->n++] = m;
    }
}

/* Without a line any of them may be meant: their names, each once, in order. */
static strid any_of(struct deobfuscation *d, const struct methods *found)
{
    strid names[MAX_METHODS], all = 0;
    size_t n = 0;
    for (size_t i = 0; i < found->n; i++) {
        strid name = found->p[i]->name;
        size_t at = 0;
        while (at < n && slice_cmp(strpool_view(d->strings, names[at]), strpool_view(d->strings, name)) < 0)
            at++;
        if (at < n && names[at] == name)
            continue;
        memmove(names + at + 1, names + at, (n++ - at) * sizeof *names);
        names[at] = name;
    }
    for (size_t i = 0; i < n; i++)
        all = i ? joined(d, strpool_view(d->strings, all), " | ", strpool_view(d->strings, names[i])) : names[i];
    return all;
}

/* Ranges of one length go line by line; any other stands for where it begins. */
static int64_t source_line_of(const struct method *m, int64_t line)
{
    bool by_line = m->first != COL_NULL && m->last != COL_NULL && m->source != COL_NULL && m->source_last != COL_NULL &&
                   m->source_last - m->source == m->last - m->first;
    return by_line ? m->source + (line - m->first) : m->source;
}

/* With a line they are what has been put into one another there, the innermost first. */
static strid chain_of(struct deobfuscation *d, uint32_t frame, const struct methods *found, int64_t line)
{
    struct storage *st = d->m->st;
    uint32_t set = st->t[T_stack_profile_symbol].n_rows;
    for (size_t i = 0; i < found->n; i++)
        stack_profile_symbol_insert(st,
                                    &(struct stack_profile_symbol_row){.symbol_set_id = set,
                                                                       .name = found->p[i]->name,
                                                                       .line_number = source_line_of(found->p[i], line),
                                                                       .inlined = i + 1 < found->n});
    ROW_SET(st, stack_profile_frame, symbol_set_id, frame, set);
    return found->p[found->n - 1]->name;
}

/* The first line that the symbols of a frame tell. */
static int64_t line_of(const struct deobfuscation *d, uint32_t frame)
{
    struct storage *st = d->m->st;
    int64_t set = ROW_GET(st, stack_profile_frame, symbol_set_id, frame), line = COL_NULL;
    if (set == COL_NULL)
        return COL_NULL;
    for (uint32_t i = (uint32_t)set; line == COL_NULL && i < st->t[T_stack_profile_symbol].n_rows &&
                                     ROW_GET(st, stack_profile_symbol, symbol_set_id, i) == set;
         i++)
        line = ROW_GET(st, stack_profile_symbol, line_number, i);
    return line;
}

/* A line that no method holds tells nothing. */
static strid name_of_frame(struct deobfuscation *d, uint32_t frame, uint64_t key)
{
    int64_t line = line_of(d, frame);
    struct methods found = {0};
    if (line != COL_NULL)
        find_methods(d, key, line, &found);
    if (found.n)
        return chain_of(d, frame, &found, line);
    find_methods(d, key, COL_NULL, &found);
    return any_of(d, &found);
}

/* The machine's frames in their order, which that in the map is not; NULL when out of memory. */
static uint32_t *frames_of(const struct u64map *frames)
{
    uint32_t *rows = mem_alloc((frames->n + 1) * sizeof *rows);
    size_t n = 0;
    const struct u64map_slot *slot;
    for (size_t it = 0; rows && (slot = u64map_next(frames, &it));)
        rows[n++] = (uint32_t)slot->value;
    if (n)
        qsort(rows, n, sizeof *rows, compare_u32);
    return rows;
}

static void name_frames(struct deobfuscation *d)
{
    struct storage *st = d->m->st;
    uint32_t *frames = frames_of(&d->s->frames);
    d->m->im->failed |= !frames;
    for (size_t i = 0; frames && i < d->s->frames.n; i++) {
        uint32_t frame = frames[i];
        uint32_t mapping = (uint32_t)ROW_GET(st, stack_profile_frame, mapping, frame);
        strid name = (strid)ROW_GET(st, stack_profile_frame, name, frame),
              path = (strid)ROW_GET(st, stack_profile_mapping, name, mapping);
        strid package = package_of_file(d, path);
        if (!package)
            package = get(&d->frame_package, frame);
        bool in_memory = slice_starts(strpool_view(d->strings, path), "/memfd:");
        if (!name || (!package && !in_memory))
            continue;
        strid to = name_of_frame(d, frame, name_key(in_memory ? 0 : package, name));
        if (to)
            ROW_SET(st, stack_profile_frame, deobfuscated_name, frame, to);
    }
    mem_free(frames);
}

/* A class in a file that tells no package is found by its name alone. */
static void name_class(struct deobfuscation *d, uint32_t class_row)
{
    struct storage *st = d->m->st;
    strid package = package_of_file(d, (strid)ROW_GET(st, heap_graph_class, location, class_row));
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

static void name_references(struct deobfuscation *d, struct row_range rows)
{
    struct storage *st = d->m->st;
    for (uint32_t i = rows.first; i < rows.first + rows.n; i++) {
        strid name = get(&d->names.members, name_key(0, (strid)ROW_GET(st, heap_graph_reference, field_name, i)));
        if (name)
            ROW_SET(st, heap_graph_reference, deobfuscated_field_name, i, name);
    }
}

static void name_heap(struct deobfuscation *d, const struct heap_graphs *all, const struct graph_rows *graph)
{
    for (uint32_t i = 0; i < graph->n_class_uses; i++)
        if (all->class_uses.p[graph->first_class_use + i] != UINT32_MAX)
            name_class(d, all->class_uses.p[graph->first_class_use + i]);
    for (uint32_t i = 0; i < graph->n_reference_ranges; i++)
        name_references(d, all->reference_ranges.p[graph->first_reference_range + i]);
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
    vec_free(&d.names.all_methods);
    u64map_free(&d.frame_package);
    u64map_free(&d.visited);
}
