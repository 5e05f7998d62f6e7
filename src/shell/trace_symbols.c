/* Asks a trace which addresses have no names, and looks for them. */
#include "shell/trace_symbols.h"

#include "shell/shell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Frames whose file can be found: those of the kernel have names of their own when they were recorded by linux.perf. */
#define NAMELESS                                                                                                       \
    "FROM stack_profile_frame f JOIN stack_profile_mapping m ON m.id = f.mapping WHERE f.symbol_set_id IS NULL AND "   \
    "(m.build_id != '' OR m.name GLOB '[[]kernel.kallsyms]*') "
#define GROUPS                                                                                                         \
    "coalesce(m.name, '') AS path, m.build_id AS build_id, m.exact_offset - m.start_offset AS offset, m.load_bias AS " \
    "bias"

/* One after the other, in the same order. */
static const char modules_sql[] =
    "SELECT " GROUPS ", count(*) AS n_frames, count(DISTINCT m.id) AS n_mappings " NAMELESS
    "GROUP BY path, build_id, offset, bias ORDER BY path, build_id, offset, bias";
static const char addresses_sql[] =
    "SELECT " GROUPS ", f.rel_pc AS rel_pc " NAMELESS "ORDER BY path, build_id, offset, bias";
static const char anonymous_sql[] =
    "SELECT count(*), count(DISTINCT m.id) FROM stack_profile_frame f JOIN stack_profile_mapping m ON m.id = f.mapping "
    "WHERE f.symbol_set_id IS NULL AND m.build_id = '' AND m.name NOT GLOB '[[]*' AND m.name != '' AND "
    "coalesce(f.name, '') = ''";
static const char release_sql[] = "SELECT str_value FROM metadata WHERE name = 'system_release' LIMIT 1";

struct gathered {
    struct symbol_module module;
    char *path, *build_id;
    VEC(uint64_t)
    addresses;
};

struct gathering {
    VEC(struct gathered)
    modules;
    char *release;
};

static int failed(struct tp *tp, struct error *err)
{
    return error_set(err, -MRD_ESQL, "%.400s", tp_error(tp));
}

static int out_of_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static const char *cell_text(const struct tp_result *r, int column)
{
    const char *text = tp_text(r, column, NULL);
    return text ? text : "";
}

/* Calls `each` for every row. */
static int for_rows(struct tp *tp, const char *sql, int (*each)(void *ctx, struct tp_result *r, struct error *err),
                    void *ctx, struct error *err)
{
    struct tp_result *r;
    if (tp_query(tp, sql, &r) < 0)
        return failed(tp, err);
    int rc = 0, more;
    while (rc == 0 && (more = tp_step(r)) != 0)
        rc = more < 0 ? failed(tp, err) : each(ctx, r, err);
    tp_result_close(r);
    return rc;
}

static int take_module(void *ctx, struct tp_result *r, struct error *err)
{
    struct gathering *g = ctx;
    struct gathered *m = vec_add(&g->modules);
    if (!m)
        return out_of_memory(err);
    m->path = mem_strdup(cell_text(r, 0));
    m->build_id = mem_strdup(cell_text(r, 1));
    m->module.file_offset = (uint64_t)tp_int64(r, 2);
    m->module.load_bias = (uint64_t)tp_int64(r, 3);
    m->module.n_frames = (uint64_t)tp_int64(r, 4);
    m->module.n_mappings = (uint64_t)tp_int64(r, 5);
    return m->path && m->build_id ? 0 : out_of_memory(err);
}

struct taking {
    struct gathering *g;
    size_t at;
};

static bool is_of(const struct gathered *m, const struct tp_result *r)
{
    return m->module.file_offset == (uint64_t)tp_int64(r, 2) && m->module.load_bias == (uint64_t)tp_int64(r, 3) &&
           strcmp(m->build_id, cell_text(r, 1)) == 0 && strcmp(m->path, cell_text(r, 0)) == 0;
}

static int take_address(void *ctx, struct tp_result *r, struct error *err)
{
    struct taking *t = ctx;
    while (t->at < t->g->modules.n && !is_of(&t->g->modules.p[t->at], r))
        t->at++;
    if (t->at == t->g->modules.n)
        return error_set(err, -MRD_EINVALID, "the trace's tables changed while they were read");
    return vec_push(&t->g->modules.p[t->at].addresses, (uint64_t)tp_int64(r, 4)) ? 0 : out_of_memory(err);
}

static int take_release(void *ctx, struct tp_result *r, struct error *err)
{
    struct gathering *g = ctx;
    mem_free(g->release);
    g->release = mem_strdup(cell_text(r, 0));
    return g->release ? 0 : out_of_memory(err);
}

static int take_anonymous(void *ctx, struct tp_result *r, struct error *err)
{
    struct symbol_report *report = ctx;
    (void)err;
    report->n_anonymous_frames = (uint64_t)tp_int64(r, 0);
    report->n_anonymous_mappings = (uint64_t)tp_int64(r, 1);
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void order(struct gathered *m)
{
    size_t n = 0;
    if (m->addresses.n > 1)
        qsort(m->addresses.p, m->addresses.n, sizeof *m->addresses.p, compare);
    for (size_t i = 0; i < m->addresses.n; i++)
        if (n == 0 || m->addresses.p[i] != m->addresses.p[n - 1])
            m->addresses.p[n++] = m->addresses.p[i];
    m->module.path = m->path;
    m->module.build_id = m->build_id;
    m->module.addresses = m->addresses.p;
    m->module.n = n;
}

static int gather(struct tp *tp, struct gathering *g, struct symbol_report *report, struct error *err)
{
    struct taking t = {.g = g};
    int rc = for_rows(tp, modules_sql, take_module, g, err);
    if (rc == 0)
        rc = for_rows(tp, addresses_sql, take_address, &t, err);
    if (rc == 0)
        rc = for_rows(tp, release_sql, take_release, g, err);
    if (rc == 0)
        rc = for_rows(tp, anonymous_sql, take_anonymous, report, err);
    for (size_t i = 0; i < g->modules.n; i++)
        order(&g->modules.p[i]);
    return rc;
}

static void gathering_free(struct gathering *g)
{
    for (size_t i = 0; i < g->modules.n; i++) {
        mem_free(g->modules.p[i].path);
        mem_free(g->modules.p[i].build_id);
        vec_free(&g->modules.p[i].addresses);
    }
    vec_free(&g->modules);
    mem_free(g->release);
}

int trace_symbols_find(struct tp *tp, const struct symbol_sources *sources, struct pb_writer *packets,
                       struct symbol_report *report, struct error *err)
{
    struct gathering g = {0};
    struct symbolizer s = {.sources = sources};
    *report = (struct symbol_report){0};
    int rc = gather(tp, &g, report, err);
    if (rc == 0)
        rc = symbol_finder_open(&s.finder, sources, err);
    s.release = g.release ? g.release : "";
    for (size_t i = 0; rc == 0 && i < g.modules.n; i++) {
        struct gathered *m = &g.modules.p[i];
        struct symbol_report_row *row = vec_add(&report->rows);
        if (!row) {
            rc = out_of_memory(err);
            break;
        }
        row->n_addresses = m->module.n;
        row->n_frames = m->module.n_frames;
        row->n_mappings = m->module.n_mappings;
        rc = symbolize_module(&s, &m->module, packets, &row->outcome, err);
        row->path = m->path;
        row->build_id = m->build_id;
        m->path = m->build_id = NULL;
        report->n_asked += row->n_addresses;
        report->n_named += row->outcome.named;
    }
    symbol_finder_close(s.finder);
    gathering_free(&g);
    return rc;
}

/* --- the report --------------------------------------------------------------------------------------------------- */

static void print_row(const struct symbol_report_row *row)
{
    const struct symbol_outcome *o = &row->outcome;
    fprintf(stderr, "  %s, build id %s: %zu of %zu addresses named", row->path,
            row->build_id[0] ? row->build_id : "not known", o->named, row->n_addresses);
    if (o->file)
        fprintf(stderr, " by %s", o->file);
    fprintf(stderr, "%s%s\n", o->note[0] ? ": " : "", o->note);
    for (size_t i = 0; i < o->attempts.n; i++)
        fprintf(stderr, "    %s (%s)\n", o->attempts.p[i].path, symbol_try_text(o->attempts.p[i].what));
}

/* What a user can do about a file, of the places that were looked at: the most telling one. */
static const struct symbol_attempt *obstacle(const struct symbol_outcome *o)
{
    static const enum symbol_try telling[] = {SYMBOL_TRY_UNTRUSTED, SYMBOL_TRY_CRC,         SYMBOL_TRY_MISMATCH,
                                              SYMBOL_TRY_DAMAGED,   SYMBOL_TRY_NOT_REGULAR, SYMBOL_TRY_UNREADABLE,
                                              SYMBOL_TRY_NO_SYMBOLS};
    for (size_t k = 0; k < sizeof telling / sizeof *telling; k++)
        for (size_t i = 0; i < o->attempts.n; i++)
            if (o->attempts.p[i].what == telling[k])
                return &o->attempts.p[i];
    return NULL;
}

static void print_notes(const struct symbol_report *report)
{
    for (size_t i = 0; i < report->rows.n; i++) {
        const struct symbol_report_row *row = &report->rows.p[i];
        const struct symbol_attempt *a = row->outcome.named ? NULL : obstacle(&row->outcome);
        if (row->outcome.note[0])
            fprintf(stderr, "  %s: %s\n", row->outcome.file ? row->outcome.file : row->path, row->outcome.note);
        else if (a)
            fprintf(stderr, "  %s: %s\n", a->path, symbol_try_text(a->what));
    }
}

void symbol_report_print(const struct symbol_report *report, bool verbose)
{
    uint64_t frames = 0, mappings = 0;
    for (size_t i = 0; i < report->rows.n; i++) {
        const struct symbol_report_row *row = &report->rows.p[i];
        if (row->outcome.named)
            continue;
        frames += row->n_frames;
        mappings += row->n_mappings;
    }
    for (size_t i = 0; verbose && i < report->rows.n; i++)
        print_row(&report->rows.p[i]);
    if (!verbose)
        print_notes(report);
    if (frames)
        fprintf(stderr,
                "  %" PRIu64 " frames of %" PRIu64
                " mappings stay without names: no file with their build id and symbols "
                "was found (--symbol-paths says where to look, --verbose where was looked)\n",
                frames, mappings);
    if (report->n_anonymous_frames)
        fprintf(stderr,
                "  %" PRIu64 " frames of %" PRIu64 " mappings stay without names: the trace has no build id of their "
                "files (link them with --build-id)\n",
                report->n_anonymous_frames, report->n_anonymous_mappings);
}

void symbol_report_free(struct symbol_report *report)
{
    for (size_t i = 0; i < report->rows.n; i++) {
        mem_free(report->rows.p[i].path);
        mem_free(report->rows.p[i].build_id);
        symbol_outcome_free(&report->rows.p[i].outcome);
    }
    vec_free(&report->rows);
}

/* --- places ------------------------------------------------------------------------------------------------------- */

int symbol_places_add(struct symbol_places *p, const char *list, char separator, struct error *err)
{
    char *text = mem_strdup(list), stop[2] = {separator, 0};
    if (!text || p->text) { /* one list is all that a command line has */
        mem_free(text);
        return p->text ? error_set(err, -MRD_EINVALID, "two lists of places for symbols") : out_of_memory(err);
    }
    p->text = text;
    for (char *rest = text, *one; (one = strsep(&rest, stop));)
        if (one[0] && !vec_push(&p->paths, one))
            return out_of_memory(err);
    p->sources.paths = p->paths.p;
    p->sources.n_paths = p->paths.n;
    return 0;
}

int symbol_places_of_environment(struct symbol_places *p, struct error *err)
{
    const char *paths = getenv("PERFETTO_BINARY_PATH"), *mode = getenv("PERFETTO_SYMBOLIZER_MODE");
    if (!paths || !paths[0])
        return 0;
    p->sources.names_only = mode && strcmp(mode, "find") == 0;
    return symbol_places_add(p, paths, ':', err);
}

void symbol_places_free(struct symbol_places *p)
{
    vec_free(&p->paths);
    mem_free(p->text);
    *p = (struct symbol_places){0};
}
