/* libmeridian: open traces, ask SQL, walk rows, read stats.
 *
 *     struct tp *tp;
 *     if (tp_open(&tp, NULL) == 0 && tp_load(tp, "trace.pftrace") == 0 && tp_finish(tp) == 0) {
 *         struct tp_result *r;
 *         if (tp_query(tp, "select name, count(*) from slice group by name", &r) == 0) {
 *             while (tp_step(r) == 1)
 *                 printf("%s %lld\n", tp_text(r, 0, NULL), (long long)tp_int64(r, 1));
 *             tp_result_close(r);
 *         }
 *     }
 *     if (tp_error(tp)[0])
 *         fprintf(stderr, "%s\n", tp_error(tp));
 *     tp_close(tp);
 *
 * Functions that can fail return 0 or a negative code of enum tp_code; tp_error() has the text. One handle is for one
 * thread at a time; only tp_interrupt() may be called from elsewhere (a signal handler, another thread). What a
 * function hands out lives until the next call on the same object, unless it says otherwise. */
#ifndef MERIDIAN_TP_H
#define MERIDIAN_TP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tp;        /* one set of traces, loaded on one timeline */
struct tp_result; /* the rows of one statement */

enum tp_code {
    TP_OK = 0,
    TP_NOMEM = -1,
    TP_IO = -2,
    TP_FORMAT = -3,
    TP_INVALID = -4,
    TP_UNSUPPORTED = -5,
    TP_NOTFOUND = -6,
    TP_SQL = -7,
    TP_INTERRUPTED = -8,
    TP_FAILED = -9, /* anything else; the text says what */
};

enum tp_type { TP_NULL, TP_INT64, TP_DOUBLE, TP_TEXT, TP_BLOB };

enum tp_clock_model { TP_CLOCKS_AUTO, TP_CLOCKS_COMPATIBLE, TP_CLOCKS_LINEAR };

/* How separate recordings are brought onto one clock by the packets that their hosts exchanged. */
enum tp_sync_method {
    TP_SYNC_EXACT,         /* the region that all messages prove: drift followed, error bounded */
    TP_SYNC_TRACE_COMPASS, /* its incremental convex hulls, number for number */
};

/* A file of code that a recording names. */
struct tp_code_file {
    const char *path;
    const uint8_t *build_id;
    size_t build_id_len; /* 0: not known */
    uint64_t inode;      /* on the machine that was recorded, as `major` and `minor` of its device; 0: not known */
    uint32_t major, minor;
};

/* All zero is the default of everything. */
struct tp_config {
    bool full_sort;                  /* sort the whole trace instead of windows between flushes */
    bool no_ftrace_raw;              /* leave the table ftrace_event empty: less memory */
    bool all_text_events;            /* events of ftrace's text fill all tables that binary ones do */
    bool analyze_proto_content;      /* fill experimental_proto_path and experimental_proto_content */
    bool crop_track_events;          /* drop track events before the range of interest */
    bool ignore_ftrace_parse_errors; /* count them, do not fail the load */
    bool no_native_plans;            /* SQLite runs every statement: for comparisons */
    bool allow_sql_file_access;      /* SQL may open files (ATTACH) */
    bool no_mmap;                    /* read files in pieces instead of mapping them */
    uint64_t memory_limit;           /* bytes that the process should take: what is loaded goes to a file beyond; 0: as
                                        the machine or the control group allows */
    const char *cache_dir;           /* keep snapshots of what is loaded there, and open those; "": the user's cache;
                                        NULL: none */
    uint64_t cache_bytes;            /* that they may take; 0: 20 GB */
    unsigned threads;                /* workers of the import; 0: as many as useful */
    enum tp_clock_model clock_model;
    enum tp_sync_method sync_method;
    const char *const *file_clocks; /* "FORMAT=CLOCK" each ("json=MONOTONIC"): files of a format are on that clock */
    size_t n_file_clocks;
    const char *sync_reference; /* name of the host whose clock is kept; NULL: the one with the least total error */
    void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total); /* while loading; total 0: unknown */
    void *progress_ctx;
    /* The same for all of loading: what is being done ("reading" bytes, "sorting" events into rows, "indexing"), how
     * much of it is done, and how much there is (0: unknown). */
    void (*progress_step)(void *ctx, const char *step, uint64_t done, uint64_t total);
    /* Opens a file of code whose unwind tables a recording needs (perf record --call-graph dwarf), while it is loaded;
     * -1: it cannot be had. It must be the file that was recorded, byte for byte: else call stacks would be false. The
     * descriptor is closed afterwards. NULL: such stacks are not unwound. */
    int (*open_code)(void *ctx, const struct tp_code_file *file);
    void *open_code_ctx;
};

/* ---- a handle ---- */

/* Opens a handle without data; `config` (may be NULL) is copied. *out is set even on failure when there is memory for
 * it, so that tp_error() can tell; close it either way. */
int tp_open(struct tp **out, const struct tp_config *config);

/* Opens a handle whose trace a server has (tp_shell server, or Perfetto's): "host:port", or the path of its Unix
 * socket. It is for asking: tp_query() and its rows, tp_summarize(), tp_interrupt(), tp_restore_initial_tables();
 * nothing can be loaded, and the stats are in the table of that name. *out as for tp_open(). */
int tp_connect(struct tp **out, const char *address);
void tp_close(struct tp *tp); /* NULL is fine; close every result before */

/* The text of the last failure of a call on this handle or its results; "" when the last call went well. */
const char *tp_error(const struct tp *tp);

/* Makes the statement that is running fail with TP_INTERRUPTED; results that are open but not being stepped go on.
 * Async-signal-safe. */
void tp_interrupt(struct tp *tp);

/* Forgets a tp_interrupt() that came when nothing ran any more. */
void tp_interrupt_clear(struct tp *tp);

/* ---- loading ---- */

/* Loads one trace (a file, a directory, or "-" for standard input). Several calls put several traces on one timeline.
 * Damaged data is not a failure: it is counted in the stats. On failure, everything read before it is there after
 * tp_finish(). */
int tp_load(struct tp *tp, const char *path);

/* Loads bytes as they come. */
int tp_feed(struct tp *tp, const void *bytes, size_t len);

/* No more data comes: makes the tables complete. Queries are answered after this. */
int tp_finish(struct tp *tp);

/* After tp_finish(): names frames of call stacks by packets of symbols, as `tp_shell util symbolize` writes them;
 * *named (may be NULL) is how many frames. What queries have made is dropped, as by tp_restore_initial_tables(). */
int tp_add_symbols(struct tp *tp, const void *packets, size_t len, uint64_t *named);

/* Bytes loaded so far. */
uint64_t tp_loaded_bytes(const struct tp *tp);

/* ---- asking ---- */

/* Runs a text of one or more statements; the result is that of the last one. */
int tp_query(struct tp *tp, const char *sql, struct tp_result **out);

/* Runs the first statement at or after sql[*at], and moves *at behind it, so that a loop shows the result of each
 * statement. `origin` names the text in error messages (a file name; NULL: "stdin"). 1: *out is its result; 0: nothing
 * but blanks and comments was left; negative: failure. */
int tp_query_next(struct tp *tp, const char *origin, const char *sql, size_t len, size_t *at, struct tp_result **out);

/* What a result is the result of. */
struct tp_statements {
    uint32_t count;       /* statements run up to and with this one */
    uint32_t with_output; /* of those, the ones with rows to show */
    size_t last_at;       /* where in the text this one begins */
    size_t last_len;      /* without the semicolon and blanks behind it */
};
void tp_result_statements(const struct tp_result *r, struct tp_statements *out);

int tp_columns(const struct tp_result *r); /* 0: the statement has nothing to show */
const char *tp_column_name(const struct tp_result *r, int column);

/* Goes to the next row: 1 there is one, 0 there are no more, negative: failure. */
int tp_step(struct tp_result *r);

/* Values of the current row, 0 <= column < tp_columns(); they live until the next tp_step(). tp_text() is
 * NUL-terminated and NULL for NULL; *len (may be NULL) its bytes. Where there is no memory for a value it is 0 or "",
 * and the next tp_step() says so. */
enum tp_type tp_column_type(const struct tp_result *r, int column);
int64_t tp_int64(const struct tp_result *r, int column);
double tp_double(const struct tp_result *r, int column);
const char *tp_text(const struct tp_result *r, int column, size_t *len);
const void *tp_blob(const struct tp_result *r, int column, size_t *len);

/* Many rows at once, for callers to whom a call costs more than a cell (bindings, columns of data frames). All zero to
 * begin with; the memory is used again by the next call, and given back by tp_cells_free(). The cell of a row and a
 * column is at [column * stride + row] of each array. */
struct tp_cells {
    size_t rows, stride;
    uint8_t *types;  /* enum tp_type */
    int64_t *values; /* the number; the bits of a double; where a text or blob begins in `bytes` */
    uint32_t *lens;  /* of a text or blob */
    char *bytes;     /* a NUL stands behind each text */
    size_t n_bytes;
    size_t cells_cap, bytes_cap; /* its own */
};

/* The next rows, at most `max` (1 or more): 1 there are some, 0 there are no more, negative: failure, and `rows` are
 * those before it. */
int tp_step_many(struct tp_result *r, size_t max, struct tp_cells *cells);
void tp_cells_free(struct tp_cells *cells);

void tp_result_close(struct tp_result *r); /* NULL is fine */

/* Drops every table, view, function and module that queries made (in the view in use). It takes some milliseconds and
 * is not interrupted: a tp_interrupt() that comes meanwhile is forgotten. Results must be closed. */
int tp_restore_initial_tables(struct tp *tp);

/* ---- views ---- */

/* Several sets of tables over one trace: what queries create in one view the others do not see. A handle begins with
 * one view; each further one costs some milliseconds to open and 0.3 MB. Not over a connection (tp_connect()). */
struct tp_view;

/* Opens a view with the initial tables; tp_finish() comes first. The one in use stays in use. */
int tp_view_open(struct tp *tp, struct tp_view **out);

/* What is asked from now on is asked in this view; NULL: the first. Results that are open stay in theirs; the text of a
 * failure must have been read. */
void tp_view_use(struct tp *tp, struct tp_view *view);

/* Its results must be closed. When it is in use, the first takes its place. NULL is fine; tp_close() closes all. */
void tp_view_close(struct tp *tp, struct tp_view *view);

/* ---- SQL modules, for INCLUDE PERFETTO MODULE ----
 *
 * May be called before or after tp_finish(), and hold until tp_close(), in the view in use and in those opened later. A
 * package whose name clashes with another is an error, unless `replace`, which takes its place. */

/* All .sql files below `dir` become modules of `package` (NULL: the directory's name). */
int tp_add_sql_dir(struct tp *tp, const char *dir, const char *package, bool replace);

struct tp_module {
    const char *name; /* the whole name, which begins with the package's */
    const char *sql;
    size_t len;
};

/* The same from texts, which are copied. */
int tp_add_sql_modules(struct tp *tp, const char *package, const struct tp_module *modules, size_t n, bool replace);

/* Puts the packages of `dir` in the place of the whole standard library. */
int tp_override_stdlib(struct tp *tp, const char *dir);

/* ---- health ---- */

struct tp_stat {
    const char *name;
    const char *severity;    /* "info", "notice", "data_loss" or "error" */
    const char *source;      /* "trace": the recording says so; "analysis": met while loading */
    const char *description; /* may be "" */
    int64_t value;
    int64_t idx;      /* a cpu, a buffer, a pid …, when `indexed` */
    uint32_t machine; /* row of the table machine; 0 is the host */
    bool indexed;
    bool of_trace;            /* of the trace as a whole: `machine` says nothing */
    const char *machine_name; /* NULL when it has none; valid until tp_close() */
};

/* The name of a row of the table machine; NULL when it has none but that of its system. Valid until tp_close(). */
const char *tp_machine_name(const struct tp *tp, uint32_t machine);

/* Walks the stats that are not 0, sorted by name, machine and idx: start with *it = 0; false at the end. */
bool tp_stats_next(struct tp *tp, size_t *it, struct tp_stat *out);

/* ---- what the library itself does, as a trace ---- */

enum tp_meta_category {
    TP_META_QUERY = 1,        /* each statement, from its start to the end of its result */
    TP_META_QUERY_DETAIL = 2, /* the time to its first row */
    TP_META_FUNCTION = 4,
    TP_META_DB = 8,   /* opening the tables */
    TP_META_API = 16, /* loading, exporting, resetting */
    TP_META_ALL = 31,
};

/* Records from now on, the last `capacity` records (0: some thousands). */
void tp_metatrace_start(struct tp *tp, unsigned categories, size_t capacity);

/* Ends it; *bytes is a trace, to be given to tp_free(). */
int tp_metatrace_stop(struct tp *tp, void **bytes, size_t *len);
void tp_free(void *bytes);

/* ---- summaries: metrics and metadata by a spec, as one message (docs/summaries.md) ---- */

enum tp_spec_format {
    TP_SPEC_GUESS, /* by the ending of the name (.pb, .textproto), else text when its first bytes are */
    TP_SPEC_TEXT,  /* protobuf text format */
    TP_SPEC_BINARY,
};

/* A TraceSummarySpec. */
struct tp_spec {
    const void *bytes;
    size_t len;
    enum tp_spec_format format;
    const char *name; /* in errors: that of its file; NULL: "spec 1" and so on */
};

/* What to compute of which specs. */
struct tp_summary {
    const struct tp_spec *specs;
    size_t n_specs;
    const char *const *metrics; /* ids, in the order that the result is to have */
    size_t n_metrics;
    bool all_metrics;           /* all that the specs have, instead of `metrics` */
    const char *metadata_query; /* id of the query that gives the metadata, columns key and value; NULL: none */
    bool text;                  /* the result in text format, not in binary */
};

/* Computes it: *bytes is a TraceSummary, to be given to tp_free(); a NUL, not counted in *len, stands behind it. A
 * failure names the spec, the metric and the field. tp_interrupt() ends it. */
int tp_summarize(struct tp *tp, const struct tp_summary *what, void **bytes, size_t *len);

/* Queries of a spec that somebody edits: each is stored as a table when it is asked for, and stored again only when it,
 * or a query that it uses, has changed. */
struct tp_summarizer;

/* In the view that is in use, as must be for its further calls. To be closed, which drops its tables, before `tp` or
 * that view is. Over a connection: TP_UNSUPPORTED. */
int tp_summarizer_open(struct tp *tp, struct tp_summarizer **out);
void tp_summarizer_close(struct tp_summarizer *s); /* NULL is fine */

struct tp_query_change {
    const char *id;
    bool updated; /* the query is new or has changed, or one that it uses: it will be computed when asked for */
    bool dropped; /* the spec has it no more, and its table is gone */
};

/* Puts the queries of a spec (at most 1000; its metrics are passed over) in the place of those that are there; *changes
 * has each once, until the next call. The table of a query that has changed stays until the query is asked for. */
int tp_summarizer_update(struct tp_summarizer *s, const struct tp_spec *spec, const struct tp_query_change **changes,
                         size_t *n);

struct tp_query_table {
    bool exists;       /* the spec has the query; if not, nothing below is set */
    const char *table; /* its name for SQL */
    int64_t n_rows;
    const char *const *columns;
    size_t n_columns;
    double duration_ms;         /* that computing it took */
    const char *sql;            /* what was run; it reads the tables of the queries that this one uses */
    const char *text;           /* the query in text format */
    const char *standalone_sql; /* the same rows without those tables */
};

/* The table of a query, computed if need be. What *out points to lives until the next call. */
int tp_summarizer_query(struct tp_summarizer *s, const char *id, struct tp_query_table *out);

/* ---- exporting ---- */

/* Writes tables and views into a SQLite database at `path`, which is replaced. Views that plain SQLite cannot answer
 * (they use our functions) become tables. A result that is open meanwhile must be closed before the next export. */
int tp_export_sqlite(struct tp *tp, const char *path);

/* Writes the trace in Chrome's trace event format, in pieces: `write` returns 0, or anything else to end it (TP_IO).
 * Pids and tids of other machines are moved up by 10,000,000 for each row of the table machine. */
int tp_export_json(struct tp *tp, int (*write)(void *ctx, const void *bytes, size_t len), void *ctx);

/* What tp_export_columns() writes. */
struct tp_export {
    const char
        *format; /* "native", "rowbinary", "arrow", "arrow_stream", "parquet", "csv" or "jsonl" (docs/export.md) */
    const char *directory;      /* gets a file for each table and query; made when it is not there */
    const char *tables;         /* names separated by commas; NULL: all that have rows, unless there are queries */
    const char *const *queries; /* "name=SELECT ..." each */
    size_t n_queries;
    const char *const *files; /* what was loaded: a trace without a UUID is named by a hash of their bytes */
    size_t n_files;
};

struct tp_export_counts {
    uint64_t files, rows, bytes;
};

/* Writes tables and results of SQL column by column, with the trace's name, machines, threads, processes, tracks and
 * args as text in each row. Each file is there whole or not at all; those written before a failure stay. */
int tp_export_columns(struct tp *tp, const struct tp_export *what, struct tp_export_counts *counts);

/* Writes separate recordings that packets have related (see docs/clock-sync.md) as one proto trace at `path`, which
 * is replaced: a machine each, with what is known of their clocks. */
int tp_write_merged(struct tp *tp, const char *path);

/* Writes the loaded trace as a snapshot at `path`, which is replaced: a file that opens in milliseconds and answers the
 * same (docs/snapshots.md). `source` (may be NULL) is the trace that was loaded: the snapshot names it, and its hash.
 */
int tp_write_snapshot(struct tp *tp, const char *path, const char *source);

struct tp_cut {
    const char *input;         /* the file that was loaded, and nothing beside it */
    const char *output;        /* is replaced */
    int64_t from, to;          /* trace time, [from, to) */
    const uint32_t *machines;  /* ids whose events stay */
    size_t n_machines;         /* 0: all */
    const uint32_t *processes; /* ids (upid) of those whose events stay */
    size_t n_processes;        /* 0: all */
    const char *redact;        /* rules (docs/cutting.md) of names to replace; NULL: none */
};

struct tp_cut_counts {
    uint64_t packets_in, packets_out;
    uint64_t events_in, events_out; /* kernel events */
    uint64_t timeless;              /* packets whose time cannot be told; they are written as they are */
    uint64_t damaged;               /* packets that cannot be read; they are written as they are (redact: left out) */
    uint64_t tail;                  /* bytes at the end that are no packet; they are left out */
    uint64_t strings, replaced;     /* of redact: what rules match, and the places */
    uint64_t unmatched;             /* rules that replaced nothing */
    uint32_t unmatched_at;          /* line of the first of them */
};

/* Writes the packets that a window of the trace needs, so that it answers the same within. Proto traces in one file
 * only: TP_FORMAT otherwise. */
int tp_cut(struct tp *tp, const struct tp_cut *what, struct tp_cut_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
