/* Brings the traces of an archive onto one timeline, as the manifest says or by default rules. */
#include "importer/merge/merge.h"
#include "importer/merge/merge_internal.h"

#include "importer/core/metadata.h"
#include "importer/ctf/ctf_import.h"
#include "importer/merge/bugreport.h"
#include "importer/proto/trace_reader.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_NESTED = 4 };
static const char first_text[] = "perfetto_manifest file must be the first trace file in the input";

static int priority_of(enum trace_format f)
{
    switch (f) {
    case FORMAT_MANIFEST:
        return -1;
    case FORMAT_PROTO:
        return 0;
    case FORMAT_ZIP:
    case FORMAT_TAR:
    case FORMAT_GZIP:
    case FORMAT_ZSTD:
        return 1;
    case FORMAT_SYMBOLS:
    case FORMAT_LOGCAT: /* the text of a bug report tells their time zone */
        return 3;
    default:
        return 2;
    }
}

static int by_order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    int names = strcmp(x->name, y->name);
    return names ? names : x->index < y->index ? -1 : x->index > y->index;
}

static enum trace_format detect(struct slice bytes)
{
    return format_detect(slice_of(bytes.p, bytes.len < FORMAT_LOOKAHEAD ? bytes.len : FORMAT_LOOKAHEAD));
}

/* Notes that `row` of trace_file was not read, or not to its end, and why. The other members are not affected. */
static void count_damage(struct merge *m, uint32_t row, const char *why)
{
    struct importer *im = m->im;
    struct arg_list args = {0};
    arg_list_str(&im->st->args, &args, "error", import_str(im, why));
    argset set = args_intern(&im->st->args, args.p, args.n);
    arg_list_free(&args);
    stats_add_idx(&im->st->stats, 0, STAT_archive_member_damaged, (int32_t)row, 1);
    trace_import_logs_insert(im->st, &(struct trace_import_logs_row){.trace_id = row,
                                                                     .ts = COL_NULL,
                                                                     .byte_offset = COL_NULL,
                                                                     .stat_key = STAT_archive_member_damaged,
                                                                     .arg_set_id = set});
}

/* Opens one layer of compression. What came before damage is kept. */
static int decompress(struct merge *m, struct entry *e, struct error *err)
{
    struct archive_member inside = {.name = mem_strdup(e->name)};
    struct error damage = {0};
    int rc = inside.name ? reader_inflate_all(e->format, e->bytes, &inside.bytes, &inside.len, &m->room, &damage)
                         : -MRD_ENOMEM;
    if (rc == -MRD_EFORMAT) {
        e->damage = arena_strndup(&m->arena, damage.text, strlen(damage.text));
        rc = e->damage ? 0 : -MRD_ENOMEM;
    }
    if (rc || !vec_push(&m->r->members, inside)) {
        mem_free(inside.name);
        mem_free(inside.bytes);
        if (rc != -MRD_ELIMIT)
            return error_set(err, -MRD_ENOMEM, "out of memory");
        *err = damage;
        return error_prefix(err, "%s", e->name);
    }
    e->bytes = slice_of(inside.bytes, inside.len);
    e->format = detect(e->bytes);
    return 0;
}

/* Adds the members of an archive; archives inside are opened too, compressed members are decompressed. `row` of
 * trace_file is the file that it all came in. */
static int collect(struct merge *m, struct slice file, int depth, uint32_t row, struct error *err)
{
    size_t first = m->r->members.n;
    int rc = archive_read_members(file, &m->r->members, &m->room, err);
    size_t end = m->r->members.n;
    if (rc == -MRD_EFORMAT && end > first) { /* it breaks off: what comes before is whole */
        count_damage(m, row, err->text);
        *err = (struct error){0};
        rc = 0;
    }
    for (size_t i = first; i < end && !rc; i++) {
        struct entry e = {.index = m->entries.n, .serial = NOT_A_TRACE};
        e.name = m->r->members.p[i].name;
        e.bytes = slice_of(m->r->members.p[i].bytes, m->r->members.p[i].len);
        e.damage = m->r->members.p[i].damaged ? "its data in the archive is damaged" : NULL;
        if (!e.bytes.len && !e.damage)
            continue;
        e.outer = e.format = detect(e.bytes);
        e.priority = priority_of(e.outer);
        for (int k = 0; k < MAX_NESTED && !rc && (e.format == FORMAT_GZIP || e.format == FORMAT_ZSTD); k++)
            rc = decompress(m, &e, err);
        if (!rc && (e.format == FORMAT_ZIP || e.format == FORMAT_TAR) && depth < MAX_NESTED)
            rc = collect(m, e.bytes, depth + 1, row, err);
        if (rc == -MRD_EFORMAT) { /* an archive that holds nothing readable */
            e.damage = arena_strndup(&m->arena, err->text, strlen(err->text));
            *err = (struct error){0};
            rc = 0;
        }
        if (!rc && !vec_push(&m->entries, e))
            rc = error_set(err, -MRD_ENOMEM, "out of memory");
        m->is_bugreport |= depth == 0 && bugreport_is_text(e.name, &m->im->bugreport_year);
    }
    return rc;
}

static size_t directory_len(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

/* Hands the members beside a CTF metadata file, and that, to the CTF import. */
static int take_ctf_trace(struct merge *m, const char *metadata, struct error *err)
{
    size_t dir = directory_len(metadata);
    const char *path = arena_strndup(&m->arena, metadata, dir ? dir - 1 : 0);
    VEC(struct ctf_file)
    files = {0};
    int rc = path ? 0 : -MRD_ENOMEM;
    for (size_t i = 0; i < m->entries.n && !rc; i++) {
        struct entry *e = &m->entries.p[i];
        if (strncmp(e->name, metadata, dir) != 0)
            continue;
        bool index = strncmp(e->name + dir, "index/", 6) == 0; /* LTTng's own way into its streams */
        if (directory_len(e->name) != dir && !index)
            continue;
        e->is_ctf = true;
        e->format = FORMAT_UNKNOWN;
        if (index)
            continue;
        rc = vec_push(&files, (struct ctf_file){e->name + dir, e->bytes}) ? 0 : -MRD_ENOMEM;
    }
    if (!rc)
        rc = ctf_import_add_files(m->im, *path ? path : "archive", files.p, files.n, err);
    vec_free(&files);
    return rc;
}

static int take_ctf(struct merge *m, uint32_t row, struct error *err)
{
    enum { MAX_BROKEN = 1024 }; /* each goes through all members */
    int broken = 0;
    for (size_t i = 0; i < m->entries.n && broken < MAX_BROKEN; i++) {
        const struct entry *e = &m->entries.p[i];
        if (strcmp(e->name + directory_len(e->name), "metadata") != 0 || !ctf_is_metadata(e->bytes))
            continue;
        int rc = take_ctf_trace(m, e->name, err);
        if (rc == -MRD_ENOMEM)
            return error_set(err, rc, "out of memory");
        if (rc) { /* this trace cannot be read, the others can */
            broken++;
            count_damage(m, row, err->text);
            *err = (struct error){0};
        }
        if (rc == -MRD_ELIMIT) /* nor can any that follows */
            return 0;
    }
    return 0;
}

/* What the traces inside are about is the manifest's business: that the archive is refused. */
static bool is_about_manifest(const struct error *e)
{
    return strncmp(e->text, "perfetto_manifest", strlen("perfetto_manifest")) == 0;
}

static struct declared_trace declared(const struct manifest_file *f)
{
    if (!f)
        return (struct declared_trace){0};
    return (struct declared_trace){true, f->path, f->machine, f->machines, f->n_machines};
}

static void read_trace(struct merge *m, const struct entry *e)
{
    const struct format_reader *other = format_reader_find(m->r->formats, e->format);
    struct error err = {0};
    if (!other) {
        reader_read_proto(m->r, e->bytes, false);
        proto_reader_finish_file(m->im->proto);
        return;
    }
    int rc = format_reader_run(m->im, other, e->bytes, &err);
    if (rc)
        importer_fail(m->im, rc, "%s", err.text);
}

static void read_entry(struct merge *m, const struct entry *e, uint32_t parent)
{
    if (e->is_ctf || (m->is_bugreport && !bugreport_has_use(e->name, e->format)))
        return;
    uint32_t row = trace_file_add(m->im, parent, import_str(m->im, e->name), e->format, (int64_t)e->bytes.len);
    char why[128];
    if (e->serial != NOT_A_TRACE) {
        struct error before = m->im->error;
        m->im->error = (struct error){0};
        m->im->trace_file = row;
        reader_begin_input(m->r,
                           (struct trace_input){.serial = e->serial,
                                                .clock_file = e->clock_file,
                                                .base_machine = e->machine,
                                                .private_clock = e->private_clock,
                                                .pinned = e->manifest && e->manifest->has_clocks && !e->manifest->clock,
                                                .declared = declared(e->manifest)});
        bool packets = !format_reader_find(m->r->formats, e->format);
        m->any_packets |= packets;
        if (packets)
            reader_note_bytes(m->r, e->bytes);
        read_trace(m, e);
        if (packets)
            reader_metadata(m->r);
        if (e->damage)
            count_damage(m, row, e->damage);
        else if (m->im->error.code && !is_about_manifest(&m->im->error))
            count_damage(m, row, m->im->error.text);
        if (!is_about_manifest(&m->im->error))
            m->im->error = before;
    } else if (e->damage) {
        count_damage(m, row, e->damage);
    } else if (e->format == FORMAT_UNKNOWN) {
        count_damage(m, row, "Unknown trace type provided (ERR:fmt)");
    } else if (e->format != FORMAT_MANIFEST && e->format != FORMAT_ZIP && e->format != FORMAT_TAR) {
        snprintf(why, sizeof why, "traces of type %s cannot be imported", format_name(e->format));
        count_damage(m, row, why);
    }
}

/* A manifest in a member that is compressed is read in its turn: no trace may come before it. */
static int check_compressed_manifest(const struct merge *m, struct error *err)
{
    bool any_trace = false;
    for (size_t i = 0; i < m->entries.n; i++) {
        const struct entry *e = &m->entries.p[i];
        if (e->format == FORMAT_MANIFEST && e->outer != FORMAT_MANIFEST && any_trace)
            return merge_fail(err, "%s", first_text);
        any_trace |= e->serial != NOT_A_TRACE;
    }
    return 0;
}

static void merge_close(struct merge *m)
{
    vec_free(&m->entries);
    vec_free(&m->edges);
    vec_free(&m->edge_ids);
    manifest_free(&m->manifest);
    arena_free(&m->arena);
}

static int merge_archive(struct reader *r, struct slice file, uint32_t row, struct error *err)
{
    struct merge m = {.r = r, .im = r->im, .room = unpack_limit(file.len)};
    struct error local = {0};
    if (!err)
        err = &local;
    sorter_force_full_sort(r->im->sorter); /* the traces overlap in time */
    int rc = collect(&m, file, 0, row, err);
    if (!rc)
        rc = take_ctf(&m, row, err);
    if (!rc)
        rc = merge_find_manifest(&m, err);
    if (!rc && m.entries.n)
        qsort(m.entries.p, m.entries.n, sizeof *m.entries.p, by_order);
    if (!rc)
        rc = merge_place(&m, err);
    if (!rc)
        rc = check_compressed_manifest(&m, err);
    if (!rc && m.has_manifest)
        rc = merge_apply_manifest(&m, err);
    for (size_t i = 0; i < m.entries.n && !rc && !r->im->failed; i++)
        read_entry(&m, &m.entries.p[i], row);
    for (size_t i = 0; i < m.edge_ids.n && !rc; i++)
        clock_graph_write_rows(r->im->clocks, &m.edges.p[2 * i], 2, m.edge_ids.p[i]);
    if (!m.any_packets && !rc) { /* none has a uuid of its own: the archive has one */
        r->head_len = 0;
        r->total_bytes = 0;
        reader_note_bytes(r, file);
    }
    r->im->input.declared = (struct declared_trace){0}; /* it goes with the manifest */
    r->im->bugreport_year = 0;
    r->im->log_zone_ns = 0;
    merge_close(&m);
    return rc;
}

static int merge_manifest_alone(struct reader *r, struct slice text, struct error *err)
{
    struct manifest manifest;
    if (r->inputs || r->has_manifest)
        return merge_fail(err, "%s", first_text);
    r->has_manifest = true;
    trace_file_add(r->im, UINT32_MAX, 0, FORMAT_MANIFEST, (int64_t)text.len);
    int rc = manifest_parse(&manifest, text, err);
    if (!rc && manifest.trace_clock)
        metadata_int(r->im, NULL, METADATA_trace_time_clock_id, manifest.trace_clock);
    manifest_free(&manifest);
    return rc;
}

const struct reader_merging merge_archives = {merge_archive, merge_manifest_alone};
