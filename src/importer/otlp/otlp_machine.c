/* Whose the resources of OTLP are: the machines that other recordings name, or machines of their own. */
#include "importer/otlp/otlp_internal.h"

#include "importer/clock/clock_graph.h"
#include "importer/input/format.h"

#include <strings.h>

enum { MAX_MACHINES = 4096, ID_DIGITS = 12 };

struct machines {
    struct otlp *o;
    struct u64map by_id;   /* strid of host.id -> machine + 1 */
    struct u64map ids;     /* machine -> strid of its host.id */
    struct u64map by_name; /* strid of a name up to its first dot, in lower case -> machine + 1 */
    struct u64map of_file; /* machines of resources without a host -> machine + 1 */
    bool alone;            /* no other recording was loaded */
    bool first_is_free;    /* machine 0 is nobody's yet */
    uint32_t named;        /* machines made by OTLP */
};

/* A host's name as it is compared: up to the first dot, in lower case. 0 for none. */
static strid short_name(struct importer *im, strid name)
{
    enum { LONGEST = 256 };
    struct slice s = strpool_view(&im->st->strings, name);
    char text[LONGEST];
    size_t n = 0;
    for (; n < s.len && n < LONGEST && s.p[n] != '.'; n++)
        text[n] = (char)(s.p[n] >= 'A' && s.p[n] <= 'Z' ? s.p[n] - 'A' + 'a' : s.p[n]);
    return n ? import_slice(im, slice_of(text, n)) : 0;
}

static strid name_of(const struct otlp_resource *res)
{
    return res->facts[FACT_NODE] ? res->facts[FACT_NODE] : res->facts[FACT_HOST_NAME];
}

static void put(struct machines *w, struct u64map *map, uint64_t key, uint64_t value)
{
    if (!u64map_set(map, key, value))
        w->o->im->failed = true;
}

/* Whether everything that was loaded is OTLP. */
static bool only_otlp(const struct importer *im)
{
    const struct storage *st = im->st;
    strid ours[] = {strpool_find(&st->strings, "otlp_json", strlen("otlp_json")),
                    strpool_find(&st->strings, "otlp_proto", strlen("otlp_proto"))};
    if (im->ctf)
        return false;
    for (uint32_t i = 0; i < st->t[T_trace_file].n_rows; i++) {
        strid type = (strid)ROW_GET(st, trace_file, trace_type, i);
        if (!ROW_GET(st, trace_file, is_container, i) && type != ours[0] && type != ours[1] &&
            type != strpool_find(&st->strings, "perfetto_manifest", strlen("perfetto_manifest")))
            return false;
    }
    return true;
}

/* Notes what the other recordings name. One machine without a name takes that of the one host there is. */
static void note_others(struct machines *w)
{
    struct importer *im = w->o->im;
    for (size_t i = 0; i < im->machines.n; i++) {
        strid name = short_name(im, (strid)ROW_GET(im->st, machine, name, i));
        if (name && !u64map_get(&w->by_name, name))
            put(w, &w->by_name, name, i + 1);
    }
    w->alone = w->o->only_otlp = only_otlp(im);
    w->o->machines_before = (uint32_t)im->machines.n;
    w->first_is_free = im->machines.n == 1 && !ROW_GET(im->st, machine, name, 0);
    strid id = 0, name = 0;
    bool several = false, unnamed = false;
    for (size_t i = 0; i < w->o->resources.n; i++) {
        const struct otlp_resource *res = &w->o->resources.p[i];
        strid this_name = short_name(im, name_of(res)), this_id = res->facts[FACT_HOST_ID];
        if (!res->used)
            continue;
        unnamed |= !this_name && !this_id;
        several |= (name && this_name && name != this_name) || (id && this_id && id != this_id);
        name = name ? name : this_name;
        id = id ? id : this_id;
    }
    /* Alone: machine 0 is that of the resources without a host, else of the first host. Beside others: machine 0 is
     * theirs, and the one host's if nobody has said otherwise. */
    if (w->alone ? unnamed : several)
        w->first_is_free = false;
}

static void describe(struct machines *w, struct machine_ctx *m, const struct otlp_resource *res)
{
    struct storage *st = w->o->im->st;
    if (res->facts[FACT_ARCH] && !ROW_GET(st, machine, arch, m->id))
        machine_set_arch(m, res->facts[FACT_ARCH]);
    if (res->facts[FACT_OS] && !ROW_GET(st, machine, sysname, m->id))
        ROW_SET(st, machine, sysname, m->id, res->facts[FACT_OS]);
    if (res->facts[FACT_OS_TEXT] && !ROW_GET(st, machine, version, m->id))
        ROW_SET(st, machine, version, m->id, res->facts[FACT_OS_TEXT]);
}

/* A machine of that name that is none of those there are. NULL when there cannot be more. */
static struct machine_ctx *new_machine(struct machines *w, strid name)
{
    struct importer *im = w->o->im;
    struct machine_ctx *m;
    if (!name) /* out of memory */
        return NULL;
    if (w->first_is_free) {
        w->first_is_free = false;
        m = im->machines.p[0];
        ROW_SET(im->st, machine, name, 0, name);
        return m;
    }
    if (w->named++ >= MAX_MACHINES)
        return NULL;
    size_t before = im->machines.n;
    m = importer_named_machine(im, strpool_cstr(&im->st->strings, name));
    for (int i = 2; m && im->machines.n == before; i++) /* another host has this name */
        m = importer_named_machine(
            im, strpool_cstr(&im->st->strings,
                             strpool_printf(&im->st->strings, "%s (%d)", strpool_cstr(&im->st->strings, name), i)));
    return m;
}

/* The machine of a resource that names its host. NULL when there cannot be more. */
static struct machine_ctx *named_machine(struct machines *w, const struct otlp_resource *res)
{
    struct importer *im = w->o->im;
    strid id = res->facts[FACT_HOST_ID], name = name_of(res), compared = short_name(im, name);
    const uint64_t *at = id ? u64map_get(&w->by_id, id) : NULL;
    if (!at && compared) {
        at = u64map_get(&w->by_name, compared);
        const uint64_t *its_id = at ? u64map_get(&w->ids, *at - 1) : NULL;
        if (its_id && id && *its_id != id) /* another host that has the same name */
            at = NULL;
    }
    struct machine_ctx *m = at ? im->machines.p[*at - 1] : NULL;
    if (!m) {
        struct slice digits = strpool_view(&im->st->strings, id);
        strid text =
            name ? name : import_slice(im, slice_of(digits.p, digits.len < ID_DIGITS ? digits.len : ID_DIGITS));
        m = new_machine(w, text);
    }
    if (!m)
        return NULL;
    if (id) {
        put(w, &w->by_id, id, m->id + 1);
        if (!u64map_get(&w->ids, m->id))
            put(w, &w->ids, m->id, id);
    }
    if (compared && !u64map_get(&w->by_name, compared))
        put(w, &w->by_name, compared, m->id + 1);
    return m;
}

/* The machine of what does not name its host: one for each file. */
static struct machine_ctx *machine_of_file(struct machines *w, const struct otlp_file *f, uint32_t file)
{
    struct importer *im = w->o->im;
    const uint64_t *at = u64map_get(&w->of_file, file);
    struct machine_ctx *m = at ? im->machines.p[*at - 1] : NULL;
    if (!m && w->alone && w->o->files.n == 1) {
        m = im->machines.p[0];
        if (!ROW_GET(im->st, machine, name, 0))
            ROW_SET(im->st, machine, name, 0, import_str(im, "otel"));
    }
    if (!m)
        m = new_machine(w, import_str(im, "otel"));
    if (m)
        put(w, &w->of_file, file, m->id + 1);
    return m ? m : im->machines.p[f->input.base_machine];
}

/* --- clocks --- */

/* The wall clock of a machine that is not known to anything: those of all machines show the same time. */
static void relate_wall_clocks(struct otlp *o, struct clock_id wall)
{
    struct clock_graph *g = o->im->clocks;
    struct clock_id trace = clock_graph_trace_clock(g);
    struct clock_id other = {.id = CLOCK_ID_REALTIME, .machine = trace.machine, .file = trace.file};
    int64_t there;
    bool known = trace.id == CLOCK_ID_REALTIME;
    if (!known && clock_graph_convert(g, other, 0, trace, &there) != 0)
        return;
    struct clock_reading equal[] = {{.clock = wall}, {.clock = other}};
    clock_graph_own_domain(g, wall);
    clock_graph_write_rows(g, equal, 2, clock_graph_add_snapshot(g, equal, 2));
}

/* The clock of the file for a machine: REALTIME as the recordings of that machine have it. */
static void open_clock(struct otlp *o, struct otlp_clock *c, int64_t some_time)
{
    struct importer *im = o->im;
    const struct otlp_file *f = &o->files.p[c->file];
    struct trace_input saved = im->input;
    uint8_t format = im->file_format;
    struct clock_id trace = clock_graph_trace_clock(im->clocks), wall = {.id = CLOCK_ID_REALTIME, .machine = c->m->id};
    int64_t there;
    uint32_t files = f->input.serial;
    for (size_t i = 0; i < o->files.n; i++)
        files = o->files.p[i].input.serial > files ? o->files.p[i].input.serial : files;
    enum { BEHIND = 64 /* traces that may have been loaded behind the last file of ours */ };
    im->input = f->input;
    im->file_format = f->json ? FORMAT_OTLP_JSON : FORMAT_OTLP;
    if (!f->input.private_clock) {
        im->input.base_machine = c->m->id;
        im->input.clock_file = c->m->clock_file;
        wall.file = c->m->clock_file;
        bool known = clock_graph_convert(im->clocks, wall, some_time, trace, &there) == 0;
        for (uint32_t i = 0; !known && !f->input.pinned && c->m->id < o->machines_before && i <= files + BEHIND; i++) {
            wall.file = i;
            known = clock_graph_convert(im->clocks, wall, some_time, trace, &there) == 0;
            if (known)
                im->input.clock_file = i;
        }
        wall.file = im->input.clock_file;
        if (!known && clock_graph_trace_clock_given(im->clocks))
            relate_wall_clocks(o, wall);
    }
    file_clock_open(&c->clock, im, CLOCK_ID_REALTIME);
    im->input = saved;
    im->file_format = format;
}

static uint32_t clock_of(struct otlp *o, struct u64map *clocks, uint32_t file, struct machine_ctx *m, int64_t some_time)
{
    bool added;
    uint64_t *at = u64map_put(clocks, (uint64_t)file << 32 | m->id, &added);
    if (!at || (added && !vec_push(&o->clocks, (struct otlp_clock){.m = m, .file = file}))) {
        o->im->failed = true;
        return 0;
    }
    if (added) {
        *at = o->clocks.n - 1;
        open_clock(o, &o->clocks.p[*at], some_time);
    }
    return (uint32_t)*at;
}

static void count_nameless(struct otlp *o, const struct otlp_resource *res)
{
    stats_add_idx(&o->im->st->stats, res->m->id, STAT_otlp_resource_without_host,
                  (int32_t)o->files.p[res->file].trace_file, 1);
}

void otlp_find_machines(struct otlp *o)
{
    struct machines w = {.o = o};
    struct u64map clocks = {0};
    int64_t some_time = o->spans.n ? o->spans.p[0].ts : 1;
    note_others(&w);
    for (size_t i = 0; i < o->resources.n && !o->im->failed; i++) {
        struct otlp_resource *res = &o->resources.p[i];
        const struct otlp_file *f = &o->files.p[res->file];
        struct machine_ctx *base = o->im->machines.p[f->input.base_machine];
        bool named = res->facts[FACT_HOST_ID] || name_of(res);
        if (!res->used)
            continue;
        if (f->declared)
            res->m = base;
        else if (named)
            res->m = named_machine(&w, res);
        else
            res->m = machine_of_file(&w, f, res->file);
        res->m = res->m ? res->m : base;
        if (!named && !f->declared)
            count_nameless(o, res);
        describe(&w, res->m, res);
    }
    /* Clocks once all machines are there: making one may move what the clocks' owner holds. */
    for (size_t i = 0; i < o->resources.n && !o->im->failed; i++)
        if (o->resources.p[i].used)
            o->resources.p[i].clock = clock_of(o, &clocks, o->resources.p[i].file, o->resources.p[i].m, some_time);
    u64map_free(&clocks);
    u64map_free(&w.by_id);
    u64map_free(&w.ids);
    u64map_free(&w.by_name);
    u64map_free(&w.of_file);
}
