/* libmeridian's handle: opens, loads, asks; maps the errors of the parts to the public codes. */
#include "api/cache.h"
#include "api/remote.h"
#include "api/row_source.h"
#include "api/tp_internal.h"
#include "api/tp_snapshot.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory_limit.h"
#include "base/spill.h"
#include "rpc/wire.h"
#include "sql/planner/planner.h"
#include "sql/query_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct tp_result {
    struct tp *tp;
    struct engine_result r;
    const struct row_source *source; /* NULL: `r`; else the rows are elsewhere */
    void *rows;                      /* the source's */
    int64_t started_ns;              /* for the metatrace */
    char *sql;                       /* likewise; may be NULL */
    uint64_t logged;                 /* its number in the log of queries */
    bool hidden;                     /* a void function, a result that asks not to be shown */
    struct tp_statements statements;
};

static const struct {
    int mrd;
    int tp;
} codes[] = {
    {MRD_ENOMEM, TP_NOMEM},       {MRD_EIO, TP_IO},
    {MRD_EFORMAT, TP_FORMAT},     {MRD_EINVALID, TP_INVALID},
    {MRD_ESQL, TP_SQL},           {MRD_EUNSUPPORTED, TP_UNSUPPORTED},
    {MRD_ENOTFOUND, TP_NOTFOUND}, {MRD_ECANCELLED, TP_INTERRUPTED},
};

int tp_done(struct tp *tp, int rc)
{
    tp->engine_failed = false;
    if (rc >= 0) {
        tp->err = (struct error){0};
        return rc;
    }
    if (!tp->err.text[0])
        error_set(&tp->err, rc, "%s", error_code_text(rc));
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (rc == -codes[i].mrd)
            return codes[i].tp;
    return TP_FAILED;
}

int tp_engine_done(struct tp *tp, int rc)
{
    int public = tp_done(tp, rc);
    tp->engine_failed = rc < 0;
    return public;
}

static void begin(struct tp *tp)
{
    tp->err = (struct error){0};
    tp->engine_failed = false;
}

int tp_connect(struct tp **out, const char *address)
{
    struct tp *tp = *out = mem_zalloc(sizeof *tp);
    if (!tp)
        return TP_NOMEM;
    tp->view = &tp->first;
    int rc = storage_init(&tp->storage); /* empty: there are no stats */
    tp->finished = true;
    return tp_done(tp, rc < 0 ? rc : remote_open(&tp->remote, address, &tp->err));
}

/* What columns may take of the memory that the process may: the rest is for strings, args and queries. */
static uint64_t spill_budget(const struct tp *tp)
{
    return tp->config.memory_limit ? tp->config.memory_limit / 4 : memory_of_machine() / 8 * 3;
}

/* … and what a plan may, and SQLite: with less than this hardly anything can be asked. */
static uint64_t query_budget(const struct tp *tp)
{
    enum { LEAST_BYTES = 64 << 20 };
    uint64_t part = tp->config.memory_limit / 4;
    return part < LEAST_BYTES ? LEAST_BYTES : part;
}

static int open_code(void *ctx, const struct code_name *name)
{
    struct tp *tp = ctx;
    tp->asked_for_code = true;
    struct tp_code_file file = {.path = name->path,
                                .build_id = name->build_id,
                                .build_id_len = name->build_id_len,
                                .inode = name->inode,
                                .major = name->major,
                                .minor = name->minor};
    return tp->config.open_code(tp->config.open_code_ctx, &file);
}

/* An empty storage, and an importer that fills it. */
static int open_importer(struct tp *tp)
{
    const uint64_t budget = spill_budget(tp);
    struct import_options opt = {
        .full_sort = tp->config.full_sort,
        .no_ftrace_raw = tp->config.no_ftrace_raw,
        .all_text_events = tp->config.all_text_events,
        .sync_method = (int)tp->config.sync_method,
        .sync_reference = tp->config.sync_reference,
        .file_clocks = tp->config.file_clocks,
        .n_file_clocks = tp->config.n_file_clocks,
        .ignore_ftrace_parse_errors = tp->config.ignore_ftrace_parse_errors,
        .crop_track_events = tp->config.crop_track_events,
        .analyze_proto_content = tp->config.analyze_proto_content,
        .clock_model = tp->config.clock_model == TP_CLOCKS_LINEAR       ? CLOCK_MODEL_LINEAR
                       : tp->config.clock_model == TP_CLOCKS_COMPATIBLE ? CLOCK_MODEL_COMPATIBLE
                                                                        : CLOCK_MODEL_AUTO,
        .threads = tp->config.threads,
        .sort_memory = budget / 2,
        .open_code = tp->config.open_code ? open_code : NULL,
        .open_code_ctx = tp,
        .progress = tp->config.progress,
        .progress_ctx = tp->config.progress_ctx,
        .progress_step = tp->config.progress_step,
    };
    int rc = storage_init(&tp->storage);
    struct spill *spill = rc ? NULL : spill_open(budget);
    if (spill)
        storage_spill(&tp->storage, spill);
    return rc ? rc : importer_open(&tp->importer, &tp->storage, &opt, &tp->err);
}

int tp_open(struct tp **out, const struct tp_config *config)
{
    struct tp *tp = *out = mem_zalloc(sizeof *tp);
    if (!tp)
        return TP_NOMEM;
    tp->view = &tp->first;
    if (config)
        tp->config = *config;
    int rc = open_importer(tp);
    if (rc == 0 && tp->config.cache_dir)
        rc = cache_open(&tp->cache, tp->config.cache_dir, tp->config.cache_bytes, &tp->err);
    return tp_done(tp, rc);
}

void tp_close(struct tp *tp)
{
    if (!tp)
        return;
    remote_close(tp->remote);
    if (tp->view)
        tp_view_use(tp, NULL);
    while (tp->first.next)
        tp_view_close(tp, tp->first.next);
    engine_close(tp->engine);
    if (tp->cache && storage_damage(&tp->storage)) /* it was the cache's: the next load makes it anew */
        cache_drop(tp->cache);
    if (tp->importer)
        importer_close(tp->importer);
    storage_free(&tp->storage);
    cache_close(tp->cache);
    vec_free(&tp->stats);
    tp_metatrace_start(tp, 0, 0);
    tp_free_packages(tp);
    query_runner_free(&tp->first.runner);
    mem_free(tp);
}

const char *tp_error(const struct tp *tp)
{
    if (!tp)
        return error_code_text(-MRD_ENOMEM);
    if (tp->engine_failed && (tp->engine || tp->remote)) {
        const char *whole = tp->remote ? remote_error(tp->remote) : engine_error_text(tp->engine);
        if (whole && whole[0])
            return whole;
    }
    return tp->err.text;
}

void tp_interrupt(struct tp *tp)
{
    if (tp && tp->remote)
        remote_interrupt(tp->remote);
    else if (tp)
        atomic_store(&tp->interrupted, true);
}

void tp_interrupt_clear(struct tp *tp)
{
    atomic_store(&tp->interrupted, false);
}

/* ---- loading ---- */

/* Feeds a file in pieces, for callers who do not want it mapped. */
static int load_pieces(struct tp *tp, const char *path)
{
    enum { PIECE = 1 << 20 };
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(&tp->err, errno, "%s", path);
    char *buf = mem_alloc(PIECE);
    int rc = buf ? 0 : -MRD_ENOMEM;
    while (rc == 0) {
        ssize_t n = file_read(fd, buf, PIECE);
        if (n < 0)
            rc = error_set_errno(&tp->err, errno, "%s", path);
        if (n <= 0)
            break;
        tp->bytes += (uint64_t)n;
        rc = importer_feed(tp->importer, buf, (size_t)n, &tp->err);
        if (rc < 0)
            error_prefix(&tp->err, "%s", path);
    }
    mem_free(buf);
    if (fd != STDIN_FILENO)
        close(fd);
    return rc;
}

static int import_file(struct tp *tp, const char *path)
{
    struct stat st;
    bool regular = strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    if (tp->config.no_mmap && regular)
        return load_pieces(tp, path);
    uint64_t before = importer_bytes(tp->importer);
    int rc = importer_add_file(tp->importer, path, &tp->err);
    tp->bytes += importer_bytes(tp->importer) - before;
    return rc;
}

/* What was kept back for the cache is imported after all. */
static int import_kept(struct tp *tp)
{
    int rc = 0;
    const char *path;
    for (size_t i = 0; rc == 0 && tp->cache && (path = cache_trace(tp->cache, i)); i++)
        rc = import_file(tp, path);
    return rc;
}

/* The load is none for the cache. */
static int leave_cache(struct tp *tp)
{
    int rc = import_kept(tp);
    cache_close(tp->cache);
    tp->cache = NULL;
    return rc;
}

int tp_load(struct tp *tp, const char *path)
{
    begin(tp);
    if (tp->finished)
        return tp_done(tp, error_set(&tp->err, -MRD_EINVALID, "%s: loading has already finished", path));
    int64_t start = tp_meta_now(tp, TP_META_API);
    if (tp->cache && cache_add_trace(tp->cache, path))
        return tp_done(tp, 0);
    int rc = tp->cache ? leave_cache(tp) : 0;
    rc = rc ? rc : import_file(tp, path);
    tp_meta_record(tp, TP_META_API, "load", start, "path", path, strlen(path));
    return tp_done(tp, rc);
}

int tp_feed(struct tp *tp, const void *bytes, size_t len)
{
    begin(tp);
    if (tp->finished)
        return tp_done(tp, error_set(&tp->err, -MRD_EINVALID, "loading has already finished"));
    int rc = tp->cache ? leave_cache(tp) : 0;
    tp->bytes += len;
    return tp_done(tp, rc ? rc : importer_feed(tp->importer, bytes, len, &tp->err));
}

/* A new engine in place of tp->engine, which is closed; on failure all stays as it was. Opening takes some milliseconds
 * and is not interrupted: half of the tables are of no use to anybody. */
static int open_engine(struct tp *tp)
{
    struct engine *before = tp->engine;
    int64_t start = tp_meta_now(tp, TP_META_DB);
    int rc = engine_open(&tp->engine, &tp->storage, &tp->err);
    if (rc == 0)
        rc = tp_clock_functions(tp);
    int packages = rc == 0 ? tp_apply_packages(tp) : 0;
    struct error refused = tp->err;
    if (rc == 0)
        rc = engine_loaded(tp->engine, &tp->err);
    if (rc == 0) {
        if (tp->config.memory_limit)
            engine_limit_memory(tp->engine, query_budget(tp));
        engine_allow_files(tp->engine, tp->config.allow_sql_file_access);
        planner_switch(tp->engine, !tp->config.no_native_plans);
        tp_interrupt_clear(tp); /* it was for what ran before */
        engine_share_interrupt(tp->engine, &tp->interrupted);
        query_runner_set_engine(&tp->view->runner, tp->engine);
        engine_close(before);
        if (packages < 0)
            tp->err = refused;
    } else { /* half an engine is none: what asks for it later is told that nothing is loaded */
        engine_close(tp->engine);
        tp->engine = before;
    }
    tp_meta_record(tp, TP_META_DB, "open tables", start, NULL, NULL, 0);
    return rc < 0 ? rc : packages;
}

/* Opens the entry of the cache for the traces; false when there is none that is good. */
static bool open_cached(struct tp *tp)
{
    /* Where code may be opened, an entry is of a trace that asked for none. */
    const char *path = cache_find(tp->cache, tp_options_sum(&tp->config) + (tp->config.open_code != NULL));
    if (!path)
        return false;
    if (importer_add_file(tp->importer, path, NULL) == 0 && importer_finish(tp->importer, NULL) == 0 &&
        tp->storage.snapshot) {
        tp->bytes = cache_trace_bytes(tp->cache);
        return true;
    }
    if (access(path, F_OK) == 0)
        cache_drop(tp->cache);
    importer_close(tp->importer);
    tp->importer = NULL;
    storage_free(&tp->storage);
    open_importer(tp); /* NULL when memory has run out */
    return false;
}

static int write_entry(void *ctx, const struct snapshot_info *info, const struct snapshot_sink *sink, struct error *err)
{
    return tp_snapshot_to(ctx, *info, sink, err);
}

int tp_finish(struct tp *tp)
{
    begin(tp);
    if (tp->finished)
        return 0;
    int64_t start = tp_meta_now(tp, TP_META_API);
    int rc = 0;
    if (!tp->cache || !open_cached(tp)) {
        if (!tp->importer) {
            tp->finished = true;
            return tp_done(tp, error_set(&tp->err, -MRD_ENOMEM, "out of memory"));
        }
        rc = tp->cache ? import_kept(tp) : 0;
        int finished = importer_finish(tp->importer, rc ? NULL : &tp->err);
        rc = rc ? rc : finished;
        if (!storage_failed(&tp->storage))
            storage_number_args(&tp->storage);
        if (rc == 0)
            rc = tp_snapshot_check_options(tp);
        if (rc == 0 && tp->cache && !tp->storage.snapshot && !tp->asked_for_code)
            cache_store(tp->cache, write_entry, tp);
    }
    tp->finished = true;
    tp_meta_record(tp, TP_META_API, "finish", start, NULL, NULL, 0);
    if (tp->tables_only) {
        storage_finalize(&tp->storage); /* numbers of args have changed */
        return tp_done(tp, rc);
    }
    struct error first = tp->err;
    int opened = open_engine(tp); /* what was imported before a failure can be asked */
    if (rc < 0)
        tp->err = first;
    return tp_done(tp, rc < 0 ? rc : opened);
}

int tp_add_symbols(struct tp *tp, const void *packets, size_t len, uint64_t *named)
{
    begin(tp);
    if (named)
        *named = 0;
    if (tp->remote)
        return tp_done(tp, error_set(&tp->err, -MRD_EUNSUPPORTED, "the trace is on a server"));
    if (!tp->finished)
        return tp_done(tp, error_set(&tp->err, -MRD_EINVALID, "call tp_finish() first"));
    int rc = importer_add_symbols(tp->importer, slice_of(packets, len), named, &tp->err);
    return tp_done(tp, rc < 0 ? rc : open_engine(tp));
}

uint64_t tp_loaded_bytes(const struct tp *tp)
{
    return tp->bytes + (tp->importer ? importer_directory_bytes(tp->importer) : 0);
}

int tp_write_merged(struct tp *tp, const char *path)
{
    begin(tp);
    if (tp->remote)
        return tp_done(tp, error_set(&tp->err, -MRD_EUNSUPPORTED, "%s: the trace is on a server", path));
    if (!tp->finished)
        return tp_done(tp, error_set(&tp->err, -MRD_EINVALID, "%s: call tp_finish() first", path));
    int rc = tp_need_packets(tp, path);
    return tp_done(tp, rc ? rc : importer_write_merged(tp->importer, path, &tp->err));
}

/* ---- asking ---- */

int tp_need_engine(struct tp *tp)
{
    begin(tp);
    if (tp->remote)
        return error_set(&tp->err, -MRD_EUNSUPPORTED, "the trace is on a server; this call works on local traces only");
    return tp->engine ? 0 : error_set(&tp->err, -MRD_EINVALID, "no trace is loaded; call tp_finish() first");
}

static struct tp_statements describe(const struct engine_script *s)
{
    size_t end = s->at;
    while (end > s->last_at && strchr(" \t\r\n\f;", s->text.p[end - 1]))
        end--;
    return (struct tp_statements){s->n_statements, s->n_statements_with_output, s->last_at, end - s->last_at};
}

static int query_remote(struct tp *tp, struct slice sql, size_t *at, struct tp_result **out)
{
    *out = NULL;
    begin(tp);
    struct tp_result *res = mem_zalloc(sizeof *res);
    if (!res)
        return tp_done(tp, -MRD_ENOMEM);
    res->tp = tp;
    struct remote_rows *rows;
    int rc = remote_query(tp->remote, sql, at, &rows, &tp->err);
    if (!rows) {
        mem_free(res);
        return tp_engine_done(tp, rc);
    }
    res->source = &remote_source;
    res->rows = rows;
    remote_statements(rows, &res->statements);
    *out = res;
    return rc;
}

int tp_result_of(struct tp *tp, const struct row_source *source, void *rows, struct tp_result **out)
{
    struct tp_result *res = *out = mem_zalloc(sizeof *res);
    begin(tp);
    if (!res)
        return tp_done(tp, -MRD_ENOMEM);
    *res = (struct tp_result){.tp = tp, .source = source, .rows = rows};
    return 0;
}

static int query(struct tp *tp, const char *origin, struct slice sql, size_t *at, struct tp_result **out)
{
    *out = NULL;
    int rc = tp_need_engine(tp);
    if (rc < 0)
        return tp_done(tp, rc);
    struct tp_result *res = mem_zalloc(sizeof *res);
    if (!res)
        return tp_done(tp, -MRD_ENOMEM);
    res->tp = tp;
    res->started_ns = tp_meta_now(tp, TP_META_QUERY | TP_META_QUERY_DETAIL);
    size_t from = at ? *at : 0;
    int64_t started = clock_now_ns(CLOCK_BOOTTIME);
    if (!at)
        res->logged = query_log_begin(tp->engine, sql, started);
    struct engine_script script = {
        .engine = tp->engine, .origin = origin ? origin : "stdin", .text = sql, .at = from, .direct = true};
    if (at) {
        rc = engine_script_next(&script, &res->r, &tp->err);
        *at = script.at;
        res->logged = query_log_begin(tp->engine, slice_of(sql.p + from, script.at - from), started);
        /* Rows of VOID are no output; a result without rows still shows the names of its columns. */
        res->hidden = res->r.row && script.n_statements_with_output == 0;
    } else {
        rc = engine_query(tp->engine, script.origin, sql, &res->r, &script, &tp->err);
    }
    query_log_first_row(tp->engine, res->logged);
    if (rc < 0 || (at && rc == 0)) {
        query_log_end(tp->engine, res->logged);
        mem_free(res);
        return rc < 0 ? tp_engine_done(tp, rc) : 0;
    }
    res->statements = describe(&script);
    tp_meta_record(tp, TP_META_QUERY_DETAIL, "first row", res->started_ns, NULL, NULL, 0);
    if (tp->meta.categories & TP_META_QUERY) {
        size_t to = at ? *at : sql.len;
        res->sql = mem_strndup((const char *)sql.p + from, to - from);
    }
    *out = res;
    return at ? 1 : 0;
}

int tp_query(struct tp *tp, const char *sql, struct tp_result **out)
{
    return tp->remote ? query_remote(tp, slice_str(sql), NULL, out) : query(tp, NULL, slice_str(sql), NULL, out);
}

int tp_query_next(struct tp *tp, const char *origin, const char *sql, size_t len, size_t *at, struct tp_result **out)
{
    return tp->remote ? query_remote(tp, slice_of(sql, len), at, out) : query(tp, origin, slice_of(sql, len), at, out);
}

void tp_result_statements(const struct tp_result *r, struct tp_statements *out)
{
    *out = r->statements;
}

int tp_columns(const struct tp_result *r)
{
    return r->source ? r->source->columns(r->rows) : r->hidden ? 0 : r->r.n_columns;
}

const char *tp_column_name(const struct tp_result *r, int column)
{
    if (r->source)
        return r->source->column_name(r->rows, column);
    const char *name = engine_result_column_name(&r->r, column);
    return name ? name : "";
}

int tp_step(struct tp_result *r)
{
    int rc = r->source ? r->source->step(r->rows, &r->tp->err) : engine_result_next(&r->r, &r->tp->err);
    return rc < 0 ? tp_engine_done(r->tp, rc) : rc;
}

enum tp_type tp_column_type(const struct tp_result *r, int column)
{
    if (r->source)
        return r->source->type(r->rows, column);
    switch (engine_value_type(&r->r, column)) {
    case SQLITE_INTEGER:
        return TP_INT64;
    case SQLITE_FLOAT:
        return TP_DOUBLE;
    case SQLITE_TEXT:
        return TP_TEXT;
    case SQLITE_BLOB:
        return TP_BLOB;
    default:
        return TP_NULL;
    }
}

int64_t tp_int64(const struct tp_result *r, int column)
{
    return r->source ? r->source->int64(r->rows, column) : engine_value_int64(&r->r, column);
}

double tp_double(const struct tp_result *r, int column)
{
    return r->source ? r->source->dbl(r->rows, column) : engine_value_double(&r->r, column);
}

const char *tp_text(const struct tp_result *r, int column, size_t *len)
{
    if (r->source)
        return r->source->bytes(r->rows, column, len);
    const char *text = engine_value_text(&r->r, column, len);
    return text || engine_value_type(&r->r, column) == SQLITE_NULL ? text : ""; /* no memory */
}

const void *tp_blob(const struct tp_result *r, int column, size_t *len)
{
    if (r->source)
        return r->source->bytes(r->rows, column, len);
    return engine_value_blob(&r->r, column, len);
}

void tp_result_close(struct tp_result *r)
{
    if (!r)
        return;
    if (r->source)
        r->source->close(r->rows);
    engine_result_close(&r->r);
    if (!r->source && r->tp->engine)
        query_log_end(r->tp->engine, r->logged);
    tp_meta_record(r->tp, TP_META_QUERY, "query", r->started_ns, "sql", r->sql, r->sql ? strlen(r->sql) : 0);
    mem_free(r->sql);
    mem_free(r);
}

int tp_restore_initial_tables(struct tp *tp)
{
    if (tp->remote) {
        begin(tp);
        return tp_done(tp, remote_call(tp->remote, RPC_RESTORE_INITIAL_TABLES, &tp->err));
    }
    int rc = tp_need_engine(tp);
    return tp_done(tp, rc < 0 ? rc : open_engine(tp));
}

/* ---- views ---- */

int tp_view_open(struct tp *tp, struct tp_view **out)
{
    *out = NULL;
    int rc = tp_need_engine(tp);
    struct tp_view *v = rc < 0 ? NULL : mem_zalloc(sizeof *v), *before = tp->view;
    if (rc == 0 && !v)
        rc = error_set(&tp->err, -MRD_ENOMEM, "out of memory");
    if (rc < 0)
        return tp_done(tp, rc);
    v->next = tp->first.next;
    tp->first.next = v;
    tp_view_use(tp, v);
    rc = open_engine(tp);
    tp_view_use(tp, before);
    if (rc < 0)
        tp_view_close(tp, v);
    else
        *out = v;
    return tp_done(tp, rc);
}

void tp_view_use(struct tp *tp, struct tp_view *view)
{
    view = view ? view : &tp->first;
    if (view == tp->view)
        return;
    tp->view->engine = tp->engine;
    tp->view = view;
    tp->engine = view->engine;
    tp->engine_failed = false; /* its text stays behind */
}

void tp_view_close(struct tp *tp, struct tp_view *view)
{
    if (!view)
        return;
    struct tp_view *at = &tp->first;
    while (at->next != view)
        at = at->next;
    at->next = view->next;
    if (tp->view == view)
        tp_view_use(tp, NULL);
    engine_close(view->engine);
    query_runner_free(&view->runner);
    mem_free(view);
}
