/* Places the traces of an archive as its manifest says: on machines, and by their clocks. */
#include "importer/merge/merge_internal.h"

#include "importer/core/metadata.h"
#include "importer/track/process_tracker.h"

#include <string.h>

int merge_fail(struct error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    error_vset(err, -MRD_EFORMAT, fmt, ap);
    va_end(ap);
    return error_prefix(err, "perfetto_manifest");
}

static bool is_container(const struct entry *e)
{
    return e->format == FORMAT_ZIP || e->format == FORMAT_TAR || e->format == FORMAT_MANIFEST;
}

int merge_find_manifest(struct merge *m, struct error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < m->entries.n; i++) {
        struct entry *e = &m->entries.p[i];
        if (e->format != FORMAT_MANIFEST || n++)
            continue;
        int rc = manifest_parse(&m->manifest, e->bytes, err);
        if (rc)
            return rc;
        m->has_manifest = true;
    }
    for (size_t i = 0; i < m->entries.n && m->has_manifest; i++) {
        const struct manifest_file *f = is_container(&m->entries.p[i]) //
                                            ? manifest_find(&m->manifest, m->entries.p[i].name)
                                            : NULL;
        if (f && (f->has_clocks || f->machine || f->n_machines))
            return merge_fail(err, "overrides are not supported for trace files which are themselves archives or "
                                   "perfetto_manifest files");
    }
    return n > 1 ? merge_fail(err, "multiple perfetto_manifest files in archive") : 0;
}

static struct entry *entry_of(const struct merge *m, const struct manifest_file *f)
{
    for (size_t i = 0; i < m->entries.n; i++)
        if (m->entries.p[i].manifest == f && m->entries.p[i].serial != NOT_A_TRACE)
            return &m->entries.p[i];
    return NULL;
}

static bool is_multi_machine(const struct entry *e)
{
    return e->manifest->n_machines > 1 || (!e->manifest->machine && e->outline.several_machines);
}

/* The row of a machine that a file names, or of the file's base machine. `where`: the member that says so. */
static int machine_row(struct merge *m, const struct entry *e, const char *where, const char *name, uint32_t *row,
                       struct error *err)
{
    *row = e->machine;
    if (!name)
        return 0;
    if (!manifest_declares(e->manifest, name))
        return merge_fail(err, "%s '%s' is not a machine declared by file '%s'", where, name, e->name);
    const struct machine_ctx *machine = importer_named_machine(m->im, name);
    if (!machine)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    *row = machine->id;
    return 0;
}

/* The machines of all files have the first rows, in the order in which the manifest first names them. */
static int make_machines(struct merge *m, struct error *err)
{
    bool ok = true, first = !m->r->inputs && !m->r->pending.n;
    struct machine_ctx *(*make)(struct importer *, const char *) =
        first ? importer_first_named_machine : importer_named_machine;
    for (size_t i = 0; i < m->manifest.n_files && ok; i++) {
        const struct manifest_file *f = &m->manifest.files[i];
        if (f->machine)
            ok = make(m->im, f->machine) != NULL;
        for (size_t k = 0; k < f->n_machines && ok; k++)
            ok = make(m->im, f->machines[k].name) != NULL;
    }
    return ok ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

/* The machine of a trace's packets that name none: that of the manifest, else the host. */
static int find_base_machine(struct merge *m, struct entry *e, bool packets, struct error *err)
{
    const struct manifest_file *f = e->manifest;
    const char *base = f ? f->machine : NULL;
    for (size_t k = 0; f && k < f->n_machines; k++)
        if (f->machines[k].id == 0)
            base = f->machines[k].name;
    bool is_bare = !base && (!packets || e->outline.has_host);
    if (!base && !is_bare)
        return 0;
    const struct machine_ctx *machine = base ? importer_named_machine(m->im, base) : importer_host(m->im);
    if (!machine)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    e->machine = machine->id;
    return 0;
}

/* A place in the order of machines by their first traces. */
static void note_machine(const struct merge *m, uint32_t *order, uint32_t *n, uint32_t row)
{
    for (uint32_t i = 0; i < *n; i++)
        if (order[i] == row)
            return;
    if (row < m->im->machines.n)
        order[(*n)++] = row;
}

/* Idle threads have their rows in the order in which the traces of their machines are read: that of the names in the
 * manifest may be another. */
static int order_idle_threads(struct merge *m, struct error *err)
{
    struct importer *im = m->im;
    uint32_t n = (uint32_t)im->machines.n, noted = 0;
    if (im->st->t[T_thread].n_rows != n) /* others are there already */
        return 0;
    uint32_t *order = arena_alloc(&m->arena, n * sizeof *order);
    struct process_tracker **trackers = arena_alloc(&m->arena, n * sizeof(void *));
    if (!order || !trackers)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < n; i++)
        trackers[i] = im->machines.p[i]->processes;
    for (size_t i = 0; i < m->entries.n; i++) {
        const struct entry *e = &m->entries.p[i];
        if (e->serial == NOT_A_TRACE)
            continue;
        note_machine(m, order, &noted, e->machine);
        for (size_t k = 0; e->manifest && k < e->manifest->n_machines; k++) {
            const struct machine_ctx *named = importer_named_machine(im, e->manifest->machines[k].name);
            note_machine(m, order, &noted, named ? named->id : 0);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        note_machine(m, order, &noted, i);
    for (uint32_t i = 0; i < n; i++)
        process_tracker_move(trackers[i], im->machines.p[order[i]]);
    return 0;
}

/* Numbers the traces, and decides whose clocks stand apart. */
int merge_place(struct merge *m, struct error *err)
{
    int rc = m->has_manifest ? make_machines(m, err) : 0;
    if (rc)
        return rc;
    for (size_t i = 0; i < m->entries.n; i++) {
        struct entry *e = &m->entries.p[i];
        e->manifest = m->has_manifest ? manifest_find(&m->manifest, e->name) : NULL;
        bool other = format_reader_find(m->r->formats, e->format) != NULL;
        if (e->format != FORMAT_PROTO && e->format != FORMAT_SYMBOLS && !other)
            continue;
        if (!other)
            e->outline = proto_outline(e->bytes);
        e->serial = m->r->inputs++;
        e->clock_file =
            e->serial && (e->outline.has_snapshots || (e->manifest && e->manifest->has_clocks)) ? e->serial : 0;
        if (m->has_manifest && (rc = find_base_machine(m, e, !other, err)))
            return rc;
        e->private_clock = e->manifest && e->manifest->has_clocks && !e->manifest->clock;
    }
    return m->has_manifest ? order_idle_threads(m, err) : 0;
}

/* A clock of a trace as the graph knows it; 0: its private one. */
static struct clock_id clock_in(const struct entry *e, uint32_t clock, uint32_t machine)
{
    if (!clock)
        return (struct clock_id){.id = CLOCK_ID_TRACE_FILE, .machine = e->machine, .file = e->serial};
    return (struct clock_id){.id = clock, .machine = machine, .file = e->clock_file};
}

static int relate(struct merge *m, struct entry *e, struct error *err)
{
    const struct manifest_file *f = e->manifest;
    struct entry *to = entry_of(m, f->sync_file);
    uint32_t from_machine, to_machine;
    if (!to)
        return 0; /* it is not in this archive */
    if (!f->clock_machine && f->n_machines > 1)
        return merge_fail(err,
                          "clocks: file '%s' is a multi-machine trace; name which machine the clock is on with clocks: "
                          "machine",
                          e->name);
    if (!f->clock_machine && is_multi_machine(e))
        return merge_fail(err, "a `clocks` override applies only to a single-machine file");
    if (!f->sync_machine && is_multi_machine(to))
        return merge_fail(err,
                          "clocks: sync_to.file '%s' is a multi-machine trace; also name the machine with clocks: "
                          "sync_to.machine",
                          to->name);
    int rc = machine_row(m, e, "clocks: machine", f->clock_machine, &from_machine, err);
    if (!rc)
        rc = machine_row(m, to, "clocks: sync_to.machine", f->sync_machine, &to_machine, err);
    if (rc)
        return rc;
    if (!f->sync_clock)
        to->private_clock = true;
    struct clock_reading edge[] = {
        {.clock = clock_in(e, f->clock, from_machine), .value = 0},
        {.clock = clock_in(to, f->sync_clock, to_machine), .value = f->offset_ns},
    };
    uint32_t id = clock_graph_add_snapshot(m->im->clocks, edge, 2);
    if (!vec_push(&m->edges, edge[0]) || !vec_push(&m->edges, edge[1]) || !vec_push(&m->edge_ids, id))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

int merge_apply_manifest(struct merge *m, struct error *err)
{
    const struct manifest *mf = &m->manifest;
    struct strpool *strings = &m->im->st->strings;
    if (mf->trace_clock) {
        const uint64_t *host = u64map_get(&m->im->machine_rows, 0);
        struct clock_id clock = {.id = mf->trace_clock, .machine = host ? (uint32_t)*host : 0};
        const struct entry *e = mf->trace_file ? entry_of(m, mf->trace_file) : NULL;
        if (e) {
            if (!mf->trace_machine && is_multi_machine(e))
                return merge_fail(
                    err,
                    "trace_time: file '%s' is a multi-machine trace; also name the machine with trace_time: "
                    "machine",
                    e->name);
            int rc = machine_row(m, e, "trace_time: machine", mf->trace_machine, &clock.machine, err);
            if (rc)
                return rc;
            clock.file = e->clock_file;
        }
        clock_graph_fix_trace_clock(m->im->clocks, clock);
        metadata_int(m->im, NULL, METADATA_trace_time_clock_id, mf->trace_clock);
    }
    for (size_t i = 0; i < m->entries.n; i++) {
        struct entry *e = &m->entries.p[i];
        int rc = e->serial != NOT_A_TRACE && e->manifest && e->manifest->has_clocks ? relate(m, e, err) : 0;
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < mf->n_attributes; i++) {
        const struct manifest_attribute *a = &mf->attributes[i];
        metadata_dynamic(m->im, NULL, strpool_printf(strings, "manifest_attribute.%s", a->key),
                         a->text ? COL_NULL : a->number, a->text ? strpool_intern_str(strings, a->text) : 0);
    }
    return 0;
}
