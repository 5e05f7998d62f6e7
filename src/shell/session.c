/* Loads traces by the global flags, and says how it went. */
#include "base/output_file.h"
#include "base/suggest.h"
#include "shell/progress.h"
#include "shell/server_name.h"
#include "shell/shell.h"
#include "shell/size_text.h"
#include "shell/text_width.h"
#include "shell/trace_code.h"
#include "shell/trace_symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    enum tp_clock_model model;
} clock_models[] = {{"auto", TP_CLOCKS_AUTO}, {"compatible", TP_CLOCKS_COMPATIBLE}, {"linear", TP_CLOCKS_LINEAR}};
static const char *const clock_model_names[] = {"auto", "compatible", "linear"};

int session_error(struct shell *sh, int code, struct error *err)
{
    static const int codes[][2] = {
        {TP_NOMEM, -MRD_ENOMEM},       {TP_IO, -MRD_EIO},
        {TP_FORMAT, -MRD_EFORMAT},     {TP_INVALID, -MRD_EINVALID},
        {TP_SQL, -MRD_ESQL},           {TP_UNSUPPORTED, -MRD_EUNSUPPORTED},
        {TP_NOTFOUND, -MRD_ENOTFOUND}, {TP_INTERRUPTED, -MRD_ECANCELLED},
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i][0] == code)
            return error_set(err, codes[i][1], "%s", tp_error(sh->tp));
    return error_set(err, -MRD_EIO, "%s", tp_error(sh->tp));
}

static const struct {
    const char *name;
    enum tp_sync_method method;
} sync_methods[] = {{"exact", TP_SYNC_EXACT}, {"trace-compass", TP_SYNC_TRACE_COMPASS}};

static int choose_sync(const struct options *o, struct tp_config *config, struct error *err)
{
    config->sync_reference = o->reference;
    for (size_t i = 0; i < sizeof sync_methods / sizeof *sync_methods; i++) {
        if (!o->method || strcmp(o->method, sync_methods[i].name) == 0) {
            config->sync_method = sync_methods[i].method;
            return 0;
        }
    }
    static const char *const names[] = {"exact", "trace-compass"};
    return suggest_refuse(err, "--method", o->method, names, 2);
}

/* What needs the packets of a trace is not served by a snapshot of it. */
static const char *cache_dir(const struct shell *sh)
{
    const char *dir = sh->opt.cache ? sh->opt.cache : getenv("MERIDIAN_CACHE");
    return sh->needs_packets || (!sh->opt.cache && dir && !dir[0]) ? NULL : dir;
}

static int make_config(const struct shell *sh, struct tp_config *config, struct error *err)
{
    const struct options *o = &sh->opt;
    const char *no_mmap = getenv("TRACE_PROCESSOR_NO_MMAP");
    *config = (struct tp_config){
        .full_sort = o->full_sort,
        .no_ftrace_raw = o->no_ftrace_raw,
        .all_text_events = o->all_text_events,
        .crop_track_events = o->crop_track_events,
        .analyze_proto_content = o->analyze_trace_proto_content,
        .allow_sql_file_access = o->allow_sql_file_access,
        .ignore_ftrace_parse_errors = sh->dev.ignore_ftrace_parse_errors,
        .no_native_plans = !sh->dev.native_plan,
        .no_mmap = no_mmap && no_mmap[0] == '1',
        .threads = (unsigned)o->threads,
        .cache_dir = cache_dir(sh),
        .file_clocks = o->format_clock.p,
        .n_file_clocks = o->format_clock.n,
    };
    const char *cache_size = getenv("MERIDIAN_CACHE_SIZE");
    int rc = o->memory ? size_parse("--memory", o->memory, &config->memory_limit, err) : 0;
    if (rc == 0 && cache_size && cache_size[0])
        rc = size_parse("MERIDIAN_CACHE_SIZE", cache_size, &config->cache_bytes, err);
    if (rc < 0)
        return rc;
    if (o->override_stdlib && !o->dev)
        return error_set(err, -MRD_EINVALID, "--override-stdlib needs --dev");
    size_t n = sizeof clock_models / sizeof *clock_models, i = 0;
    for (; o->clock_model && i < n; i++)
        if (strcmp(o->clock_model, clock_models[i].name) == 0) {
            config->clock_model = clock_models[i].model;
            break;
        }
    if (i == n)
        return suggest_refuse(err, "--clock-model", o->clock_model, clock_model_names, n);
    return choose_sync(o, config, err);
}

/* "PATH" or "PATH@PACKAGE" */
static int add_package(struct tp *tp, const char *text, bool replace)
{
    const char *at = strrchr(text, '@');
    char path[4096];
    snprintf(path, sizeof path, "%.*s", (int)(at ? at - text : (ptrdiff_t)strlen(text)), text);
    return tp_add_sql_dir(tp, path, at && at[1] ? at + 1 : NULL, replace);
}

static int add_packages(struct tp *tp, const struct options *o)
{
    int rc = o->override_stdlib ? tp_override_stdlib(tp, o->override_stdlib) : 0;
    for (size_t i = 0; i < o->add_sql_package.n && rc == 0; i++)
        rc = add_package(tp, o->add_sql_package.p[i], false);
    for (size_t i = 0; i < o->override_sql_package.n && rc == 0; i++)
        rc = add_package(tp, o->override_sql_package.p[i], true);
    return rc;
}

static const struct {
    const char *name;
    unsigned categories;
} meta_categories[] = {
    {"query_toplevel", TP_META_QUERY},
    {"query_detailed", TP_META_QUERY_DETAIL},
    {"function_call", TP_META_FUNCTION},
    {"db", TP_META_DB},
    {"api", TP_META_API},
    {"all", TP_META_ALL},
    {"*", TP_META_ALL},
};

static int parse_meta_categories(const char *list, unsigned *out, struct error *err)
{
    *out = list ? 0 : TP_META_QUERY | TP_META_API;
    for (const char *p = list ? list : ""; *p;) {
        size_t len = strcspn(p, ","), i = 0, n = sizeof meta_categories / sizeof *meta_categories;
        while (i < n && (strlen(meta_categories[i].name) != len || strncmp(meta_categories[i].name, p, len) != 0))
            i++;
        if (i == n)
            return error_set(err, -MRD_EINVALID, "--metatrace-categories: unknown category '%.*s'", (int)len, p);
        *out |= meta_categories[i].categories;
        p += len;
        p += *p == ',';
    }
    return 0;
}

static int write_whole(const char *path, const void *bytes, size_t len, struct error *err)
{
    struct output_file out;
    int rc = output_file_open(&out, path, err);
    if (rc == 0)
        rc = output_file_write(&out, bytes, len, err);
    return output_file_close(&out, rc, err);
}

int session_write_metatrace(struct shell *sh, struct error *err)
{
    void *bytes;
    size_t len;
    if (!sh->opt.metatrace || !sh->tp)
        return 0;
    int rc = tp_metatrace_stop(sh->tp, &bytes, &len);
    if (rc < 0)
        return session_error(sh, rc, err);
    rc = write_whole(sh->opt.metatrace, bytes, len, err);
    tp_free(bytes);
    return rc;
}

/* What the importer says of it, in the words that clients know. */
#define UNKNOWN_TYPE "Unknown trace type"

static bool is_remote(const char *path)
{
    return strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0;
}

/* A word is the name of a session when its socket is there, and a host otherwise. */
static int connect_server(struct shell *sh, struct error *err)
{
    const char *address = sh->opt.remote;
    struct server_name name;
    if (!strpbrk(address, ":/") && server_name_resolve(&name, address, NULL, false, err) == 0 &&
        access(name.socket_path, F_OK) == 0)
        address = name.socket_path;
    int rc = tp_connect(&sh->tp, address);
    if (rc < 0) {
        session_error(sh, rc, err);
        return error_prefix(err, "--remote");
    }
    return 0;
}

/* Where --symbols says to look; else, for what is used to Perfetto, its variables do. */
static int places_of(const struct shell *sh, struct symbol_places *places, struct error *err)
{
    const char *where = sh->opt.symbols;
    if (!where)
        return symbol_places_of_environment(places, err);
    if (strcmp(where, "off") == 0)
        return 0;
    places->sources.this_machine = strcmp(where, "auto") == 0;
    return places->sources.this_machine ? 0 : symbol_places_add(places, where, ',', err);
}

/* Names the functions of the trace. That none are found does not fail the load. */
static int name_functions(struct shell *sh, const struct symbol_sources *sources, struct error *err)
{
    struct symbol_report report = {0};
    struct pb_writer packets = {0};
    uint64_t frames = 0;
    int rc = trace_symbols_find(sh->tp, sources, &packets, &report, err);
    if (rc == 0 && packets.n && tp_add_symbols(sh->tp, packets.p, packets.n, &frames) < 0)
        rc = session_error(sh, TP_FAILED, err);
    if (rc == 0 && report.n_asked) {
        fprintf(stderr, "Symbols: %" PRIu64 " frames named\n", frames);
        symbol_report_print(&report, false);
    }
    symbol_report_free(&report);
    pb_writer_free(&packets);
    return rc;
}

/* `sources`: where code and its symbols are looked for, NULL: nowhere. */
static int load(struct shell *sh, const char *const *paths, size_t n, struct symbol_sources *sources, struct error *err)
{
    struct tp_config config;
    struct progress progress;
    int rc = make_config(sh, &config, err);
    if (rc < 0)
        return rc;
    config.open_code = sources ? trace_code_open : NULL;
    config.open_code_ctx = sources;
    progress_begin(&progress, sh->dev.all_progress);
    if (isatty(STDERR_FILENO)) {
        config.progress_step = progress_step;
        config.progress_ctx = &progress;
    }
    for (size_t i = 0; i < n; i++)
        if (is_remote(paths[i]))
            return error_set(err, -MRD_EUNSUPPORTED,
                             "%s: traces are not fetched over the network yet: download it and give the file",
                             paths[i]);
    int64_t start = shell_now_ns();
    unsigned categories;
    rc = parse_meta_categories(sh->opt.metatrace_categories, &categories, err);
    if (rc < 0)
        return rc;
    rc = tp_open(&sh->tp, &config);
    if (rc == 0 && sh->opt.metatrace)
        tp_metatrace_start(sh->tp, categories, (size_t)sh->opt.metatrace_buffer_capacity);
    if (rc == 0)
        rc = add_packages(sh->tp, &sh->opt);
    const char *unknown = NULL;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = tp_load(sh->tp, paths[i]);
        if (rc == TP_FORMAT && strstr(tp_error(sh->tp), UNKNOWN_TYPE))
            unknown = paths[i];
    }
    if (rc == 0) {
        rc = tp_finish(sh->tp);
        if (n == 1 && rc == TP_FORMAT && strstr(tp_error(sh->tp), UNKNOWN_TYPE)) /* the cache had it wait until now */
            unknown = paths[0];
    }
    sh->load_ns = shell_now_ns() - start;
    progress_end(&progress);
    if (unknown)
        return error_set(err, -MRD_EFORMAT, "%s: not a trace in a format that is known (docs/formats.md lists them)",
                         unknown);
    if (rc < 0)
        return session_error(sh, rc, err);
    double mb = (double)tp_loaded_bytes(sh->tp) / 1e6, s = (double)sh->load_ns / 1e9;
    fprintf(stderr, "Trace loaded: %.2f MB in %.2fs (%.1f MB/s)\n", mb, s, s > 0 ? mb / s : 0);
    if (n && !tp_loaded_bytes(sh->tp))
        fprintf(stderr, "%s: %s\n", paths[0],
                n > 1 ? "the files are empty" : "the file is empty: nothing was recorded");
    if (!sh->no_health_report)
        session_report_health(sh->tp);
    return sources ? name_functions(sh, sources, err) : 0;
}

bool session_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return a && b && stat(a, &x) == 0 && S_ISREG(x.st_mode) && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

int session_spare_input(const char *in, const char *out, struct error *err)
{
    return session_same_file(in, out)
               ? error_set(err, -MRD_EINVALID, "%s: what is written would replace the trace; give another name", out)
               : 0;
}

int session_load(struct shell *sh, const char *const *paths, size_t n, struct error *err)
{
    struct symbol_places places = {0};
    const char *const written[] = {sh->writes_all ? NULL : sh->opt.output, sh->opt.metatrace, sh->opt.perf_file};
    for (size_t i = 0; i < n * 3; i++)
        if (session_spare_input(paths[i / 3], written[i % 3], err) < 0)
            return err->code;
    if (sh->opt.remote)
        return n == 0 ? connect_server(sh, err)
                      : error_set(err, -MRD_EINVALID,
                                  "--remote: the trace is on the server; only query [SQL], interactive and "
                                  "summarize [SPEC...] work");
    int rc = sh->names_functions_itself ? 0 : places_of(sh, &places, err);
    bool asked = places.sources.this_machine || places.sources.n_paths;
    if (rc == 0)
        rc = load(sh, paths, n, asked ? &places.sources : NULL, err);
    symbol_places_free(&places);
    return rc;
}

int session_config(const struct shell *sh, struct tp_config *config, struct error *err)
{
    return make_config(sh, config, err);
}

int session_add_packages(const struct shell *sh, struct tp *tp)
{
    return add_packages(tp, &sh->opt);
}

int session_write_perf(struct shell *sh, int64_t query_ns, struct error *err)
{
    if (!sh->opt.perf_file)
        return 0;
    char text[64];
    int len = snprintf(text, sizeof text, "%" PRId64 ",%" PRId64, sh->load_ns, query_ns);
    return write_whole(sh->opt.perf_file, text, (size_t)len, err);
}

/* ---- health ---- */

static const struct {
    const char *title;
    const char *severity;
    const char *source; /* NULL: any */
} sections[] = {
    {"Trace errors", "error", "trace"},
    {"Import errors", "error", "analysis"},
    {"Data losses", "data_loss", NULL},
};

void session_report_health(struct tp *tp)
{
    bool colour = text_colours(STDERR_FILENO), any = false;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        bool titled = false;
        struct tp_stat s;
        for (size_t it = 0; tp_stats_next(tp, &it, &s);) {
            if (s.value <= 0 || strcmp(s.severity, sections[i].severity) != 0 ||
                (sections[i].source && strcmp(s.source, sections[i].source) != 0))
                continue;
            if (!any)
                fprintf(stderr, "%sTrace health issues:%s\n", colour ? "\033[1;33m" : "", colour ? "\033[0m" : "");
            if (!titled)
                fprintf(stderr, "  %s:\n", sections[i].title);
            any = titled = true;
            fprintf(stderr, "    %s", s.name);
            if (s.indexed)
                fprintf(stderr, "[%" PRId64 "]", s.idx);
            if (s.machine_name)
                fprintf(stderr, " on %s", s.machine_name);
            else if (s.machine)
                fprintf(stderr, " on machine %" PRIu32, s.machine);
            fprintf(stderr, ": %" PRId64 "%s%s\n", s.value, s.description[0] ? " | " : "", s.description);
        }
    }
    if (any)
        fprintf(stderr, "  (run tp_shell check for what to do)\n");
}
