/* tp_shell fleet: many recordings in a ClickHouse cluster. */
#include "fleet/fleet.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/suggest.h"
#include "shell/interrupt.h"
#include "shell/output.h"
#include "shell/shell.h"
#include "shell/ticker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- flags ---- */

struct unit {
    const char *name;
    double factor;
};
static const struct unit times[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 7 * 86400.0}};
static const struct unit sizes[] = {{"K", 1024}, {"M", 1024 * 1024.0}, {"G", 1024 * 1024 * 1024.0}};

/* A number with a unit; whole numbers of at most 2^53. */
static int read_quantity(const char *flag, const char *text, const struct unit *units, size_t n, const char *use,
                         int64_t *out, struct error *err)
{
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    for (size_t i = 0; end != text && errno == 0 && v >= 0 && i < n; i++)
        if (strcmp(end, units[i].name) == 0 && v * units[i].factor < 9e15) {
            *out = (int64_t)(v * units[i].factor);
            return 0;
        }
    return error_set(err, -MRD_EINVALID, "%s: invalid value '%.60s': %s", flag, text, use);
}

static int read_time(const char *flag, const char *text, int64_t *seconds, struct error *err)
{
    return read_quantity(flag, text, times, sizeof times / sizeof *times, "use a number with s, m, h, d or w", seconds,
                         err);
}

enum { MAX_ADDRESSES = 64, MAX_SQL = 64 << 20 };

struct addresses {
    const char *p[MAX_ADDRESSES];
    size_t n;
    char *owned;
};

/* --server, else MERIDIAN_FLEET (separated by commas), else this machine. */
static int read_addresses(const struct options *o, struct addresses *a, struct error *err)
{
    const char *from = getenv("MERIDIAN_FLEET");
    *a = (struct addresses){0};
    for (size_t i = 0; i < o->servers.n && a->n < MAX_ADDRESSES; i++)
        a->p[a->n++] = o->servers.p[i];
    if (a->n)
        return 0;
    a->owned = mem_strdup(from && from[0] ? from : "http://localhost:8123");
    if (!a->owned)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    char *rest = a->owned;
    for (char *word; a->n < MAX_ADDRESSES && (word = strsep(&rest, ","));)
        if (*word)
            a->p[a->n++] = word;
    return a->n ? 0 : error_set(err, -MRD_EINVALID, "MERIDIAN_FLEET has no address");
}

enum { MOST_TIMEOUT_S = 1000000 }; /* 11 days */

/* --timeout, in milliseconds; 0: it is not given. */
static int read_timeout(const struct options *o, unsigned *ms, struct error *err)
{
    int64_t seconds = 0;
    int rc = o->query_timeout ? read_time("--timeout", o->query_timeout, &seconds, err) : 0;
    if (rc == 0 && o->query_timeout && (seconds == 0 || seconds > MOST_TIMEOUT_S))
        rc = error_set(err, -MRD_EINVALID, "--timeout: invalid value '%.60s': use 1s to %dd", o->query_timeout,
                       MOST_TIMEOUT_S / 86400);
    *ms = rc == 0 ? (unsigned)seconds * 1000 : 0;
    return rc;
}

static struct fleet_where where(const struct shell *sh, const struct addresses *a)
{
    const struct options *o = &sh->opt;
    return (struct fleet_where){.servers = a->p,
                                .n_servers = a->n,
                                .database = o->database,
                                .user = o->user,
                                .password = getenv("MERIDIAN_FLEET_PASSWORD"),
                                .limit_ms = (unsigned)sh->dev.fleet_answer_ms,
                                .limit_bytes = (uint64_t)sh->dev.fleet_answer_bytes,
                                .limit_rows = (uint64_t)sh->dev.fleet_answer_rows};
}

static int no_arguments(const struct options *o, struct error *err)
{
    return o->positionals.n > 1 ? error_set(err, -MRD_EINVALID, "fleet %s: '%.100s' is one argument too many",
                                            o->positionals.p[0], o->positionals.p[1])
                                : 0;
}

/* ---- init ---- */

static int run_init(struct shell *sh, struct error *err)
{
    const struct options *o = &sh->opt;
    struct addresses a;
    int rc = read_addresses(o, &a, err);
    struct fleet_where w = where(sh, &a);
    if (rc == 0 && o->positionals.n > 1) {
        w.servers = o->positionals.p + 1;
        w.n_servers = o->positionals.n - 1;
    }
    if (rc == 0)
        rc = fleet_init(&w, o->cluster, err);
    if (rc == 0)
        fprintf(stderr, "the fleet '%s' is ready on %zu server%s\n", w.database ? w.database : "fleet", w.n_servers,
                w.n_servers == 1 ? "" : "s");
    mem_free(a.owned);
    return rc;
}

/* ---- add ---- */

struct add_view {
    bool terminal, shown;
};

static void clear_line(struct add_view *v)
{
    if (v->shown)
        fprintf(stderr, "\r\033[K");
    v->shown = false;
}

static void tell(void *ctx, const char *text)
{
    clear_line(ctx);
    fprintf(stderr, "%s\n", text);
}

static void show_progress(void *ctx, const struct fleet_progress *p)
{
    struct add_view *v = ctx;
    size_t over = p->added + p->known + p->failed;
    if (!v->terminal)
        return;
    fprintf(stderr, "\r\033[K%zu of %zu recordings, %zu added, %.1f MB", over, p->files, p->added,
            (double)p->bytes / 1e6);
    if (p->seconds > 0)
        fprintf(stderr, ", %.1f MB/s", (double)p->bytes / 1e6 / (double)p->seconds);
    if (p->failed)
        fprintf(stderr, ", %zu failed", p->failed);
    if (p->waiting)
        fprintf(stderr, ", %zu wait for a server", p->waiting);
    fprintf(stderr, " (Ctrl-C ends it)");
    v->shown = true;
}

static bool stopped(void *ctx)
{
    (void)ctx;
    return interrupt_came();
}

static void tell_counts(const struct fleet_added *n, int64_t took_ns)
{
    double seconds = (double)took_ns / 1e9;
    fprintf(stderr, "%zu recordings: %zu added (%.1f MB, %" PRIu64 " rows, %.1f s)", n->files, n->added,
            (double)n->bytes / 1e6, n->rows, seconds);
    if (n->known)
        fprintf(stderr, ", %zu were there", n->known);
    if (n->copies)
        fprintf(stderr, ", %zu copies of others", n->copies);
    if (n->same_uuid)
        fprintf(stderr, ", %zu with the UUID of another recording (fleet_same_uuid)", n->same_uuid);
    if (n->failed)
        fprintf(stderr, ", %zu cannot be imported (fleet_errors)", n->failed);
    if (n->postponed)
        fprintf(stderr, ", %zu not added: run it again", n->postponed);
    fprintf(stderr, "\n");
}

static int add_config(struct shell *sh, struct fleet_add *what, struct tp_config *config, struct error *err)
{
    const struct options *o = &sh->opt;
    int64_t wait = 60, memory = 0;
    int rc = session_config(sh, config, err);
    if (rc == 0 && o->wait)
        rc = read_time("--wait", o->wait, &wait, err);
    if (rc == 0 && o->fleet_memory)
        rc = read_quantity("--memory", o->fleet_memory, sizes, sizeof sizes / sizeof *sizes,
                           "use a number with K, M or G", &memory, err);
    if (rc == 0 && o->fleet_memory && memory < 64 << 20)
        rc = error_set(err, -MRD_EINVALID, "--memory: %s is too little; 64M is the least", o->fleet_memory);
    if (!o->threads) /* there is a process for each CPU already */
        config->threads = 1;
    what->config = config;
    what->wait_s = wait > 1000000 ? 1000000 : (unsigned)wait;
    what->memory = (uint64_t)memory;
    what->batch = (unsigned)sh->dev.fleet_batch;
    what->jobs = o->jobs > 256 ? 256 : (unsigned)o->jobs;
    return rc;
}

static int run_add(struct shell *sh, struct fleet *f, struct error *err)
{
    const struct options *o = &sh->opt;
    struct add_view view = {.terminal = isatty(STDERR_FILENO) == 1};
    struct fleet_added counts;
    struct tp_config config;
    struct fleet_add what = {.paths = o->positionals.p + 1,
                             .n_paths = o->positionals.n - 1,
                             .build = o->build,
                             .labels = o->labels.p,
                             .n_labels = o->labels.n,
                             .stopped = stopped,
                             .progress = show_progress,
                             .tell = tell,
                             .ctx = &view};
    if (what.n_paths == 0)
        return error_set(err, -MRD_EINVALID,
                         "fleet add: give files, directories or patterns, e.g. tp_shell fleet add "
                         "recordings/");
    int rc = add_config(sh, &what, &config, err);
    if (rc < 0)
        return rc;
    interrupt_command(NULL);
    int64_t started = shell_now_ns();
    rc = fleet_add(f, &what, &counts, err);
    clear_line(&view);
    if (rc == 0 || counts.added)
        tell_counts(&counts, shell_now_ns() - started);
    interrupt_end_command();
    return rc < 0 ? rc : counts.failed + counts.postponed > 0;
}

/* ---- query ---- */

static int read_sql(const struct options *o, char **owned, const char **sql, struct error *err)
{
    size_t n;
    if (o->positionals.n == 2 && !o->query_file) {
        *sql = o->positionals.p[1];
        return 0;
    }
    if (o->positionals.n > 1)
        return error_set(err, -MRD_EINVALID, "fleet query: give one statement, in quotes");
    if (!o->query_file && isatty(STDIN_FILENO))
        return error_set(err, -MRD_EINVALID,
                         "fleet query: give SQL, e.g. tp_shell fleet query 'select count() from "
                         "fleet_traces'");
    int rc = file_read_all(o->query_file ? o->query_file : "-", MAX_SQL, owned, &n, err);
    *sql = *owned;
    return rc;
}

/* What is asked: SQL of ClickHouse, or PerfettoSQL with or without it. */
struct question {
    const char *sql;
    const struct fleet_perfetto *perfetto;
    size_t failed;
};

static int ask(struct shell *sh, struct fleet *f, struct question *q, struct tp_result **r, struct error *err)
{
    return q->perfetto ? fleet_perfetto(f, sh->tp, q->perfetto, r, &q->failed, err)
                       : fleet_query(f, sh->tp, q->sql, r, err);
}

static int print_rows(struct shell *sh, struct fleet *f, struct question *q, int format, struct error *err)
{
    struct text_out *out = mem_alloc(sizeof *out);
    struct tp_result *r = NULL;
    struct ticker ticker;
    int rc = out ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc == 0 && tp_open(&sh->tp, NULL) < 0)
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    ticker_start(&ticker, "Running", false);
    if (rc == 0)
        rc = ask(sh, f, q, &r, err);
    if (rc == 0) {
        out_init(out, STDOUT_FILENO);
        out->ticker = ticker_shares(STDOUT_FILENO) ? &ticker : NULL;
        struct output output = {.out = out, .format = (enum output_format)format};
        int64_t rows = output_result(&output, r);
        rc = rows < 0 ? session_error(sh, (int)rows, err) : 0;
    }
    ticker_stop(&ticker);
    int written = rc == 0 || r ? out_flush(out, rc < 0 ? NULL : err) : 0;
    tp_result_close(r);
    mem_free(out);
    return rc < 0 ? rc : written;
}

/* Replicas that lack what others have answer otherwise: worth a word before the answer is believed. */
static void warn_of_server(void *ctx, const struct fleet_server_state *s)
{
    (void)ctx;
    if (s->reachable && s->missing)
        fprintf(stderr, "warning: %s lacks %" PRIu64 " recordings that its replicas have: run tp_shell fleet repair\n",
                s->url, s->missing);
}

static void tell_failed(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "%s\n", text);
}

/* The statement; with --perfetto it may be left out. */
static int read_question(const struct options *o, struct question *q, struct fleet_perfetto *per, char **owned,
                         struct error *err)
{
    *per = (struct fleet_perfetto){.sql = o->perfetto,
                                   .condition = o->condition,
                                   .files = o->files_at.p,
                                   .n_files = o->files_at.n,
                                   .tell = tell_failed};
    if (!o->perfetto && (o->condition || o->files_at.n))
        return error_set(err, -MRD_EINVALID, "fleet query: %s belongs to --perfetto",
                         o->condition ? "--where" : "--files");
    int rc = o->perfetto && o->positionals.n == 1 && !o->query_file ? 0 : read_sql(o, owned, &q->sql, err);
    q->perfetto = o->perfetto ? per : NULL;
    per->then = q->sql;
    return rc;
}

static int run_query(struct shell *sh, struct fleet *f, struct error *err)
{
    const char *name = sh->opt.format ? sh->opt.format : "classic";
    int format = output_format_find(name);
    struct question q = {0};
    struct fleet_perfetto per;
    char *owned = NULL;
    if (format < 0)
        return suggest_refuse(err, "--format", name, output_format_names, OUTPUT_FORMATS);
    int rc = read_question(&sh->opt, &q, &per, &owned, err);
    if (rc == 0)
        rc = fleet_compare_replicas(f, warn_of_server, NULL, err);
    int64_t start = shell_now_ns();
    if (rc == 0)
        rc = print_rows(sh, f, &q, format, err);
    if (rc == 0)
        fprintf(stderr, "Query execution time: %lld ms\n", (long long)((shell_now_ns() - start) / 1000000));
    if (q.failed)
        fprintf(stderr, "%zu recordings did not answer\n", q.failed);
    mem_free(owned);
    return rc < 0 ? rc : q.failed > 0;
}

/* ---- status, drop, repair ---- */

static void print_server(void *ctx, const struct fleet_server_state *s)
{
    bool *bad = ctx;
    printf("shard %u replica %u  %s  ", s->shard + 1, s->replica + 1, s->url);
    if (!s->reachable) {
        printf("does not answer: %s\n", s->why);
        *bad = true;
        return;
    }
    printf("%" PRIu64 " traces, %" PRIu64 " rows, %.1f MB", s->traces, s->rows, (double)s->disk_bytes / 1e6);
    if (s->rows)
        printf(", %.1f bytes a row", (double)s->disk_bytes / (double)s->rows);
    printf("\n");
    if (s->errors)
        printf("    %" PRIu64 " recordings cannot be imported: see fleet_errors\n", s->errors);
    if (s->begun)
        printf("    %" PRIu64
               " loads were begun and have no commit (yet): fleet repair takes them away after an hour\n",
               s->begun);
    if (s->missing) {
        printf("    %" PRIu64 " traces that other replicas have are missing: run tp_shell fleet repair\n", s->missing);
        *bad = true;
    }
}

/* What each table takes; of all replicas together, as the commits count it. */
static const char tables_sql[] =
    "SELECT tables AS table, count() AS traces, sum(rows) AS all_rows, round(sum(bytes) / 1e6, 1) AS sent_MB, "
    "round(sum(bytes) / sum(rows), 1) AS sent_bytes_a_row, round(sum(bytes) / count()) AS sent_bytes_a_trace FROM "
    "(SELECT tables, rows, bytes FROM fleet_traces) ARRAY JOIN tables, rows, bytes GROUP BY tables ORDER BY sum(bytes) "
    "DESC";

static int run_status(struct shell *sh, struct fleet *f, struct error *err)
{
    bool bad = false;
    int rc = no_arguments(&sh->opt, err);
    if (rc == 0)
        rc = fleet_states(f, print_server, &bad, err);
    printf("\n");
    fflush(stdout);
    struct question q = {.sql = tables_sql};
    if (rc == 0)
        rc = print_rows(sh, f, &q, sh->opt.format ? output_format_find(sh->opt.format) : OUTPUT_TABLE, err);
    return rc < 0 ? rc : bad;
}

static int run_drop(struct shell *sh, struct fleet *f, struct error *err)
{
    const struct options *o = &sh->opt;
    struct fleet_dropped n;
    int64_t older = 0;
    int rc = no_arguments(o, err);
    if (rc == 0 && !o->older_than)
        rc = error_set(err, -MRD_EINVALID, "fleet drop: --older-than TIME is needed, e.g. --older-than 90d");
    if (rc == 0)
        rc = read_time("--older-than", o->older_than, &older, err);
    if (rc == 0)
        rc = fleet_drop(f, older, o->condition, &n, err);
    if (rc == 0)
        fprintf(stderr, "%" PRIu64 " traces dropped\n", n.traces);
    return rc;
}

static void show_repair(void *ctx, const struct fleet_repair_step *s)
{
    ticker_say(ctx, ", shard %u replica %u, %s %" PRIu64 " of %" PRIu64 ", %.1fM rows", s->shard + 1, s->replica + 1,
               s->what, s->done, s->of, (double)s->rows / 1e6);
}

static int run_repair(struct shell *sh, struct fleet *f, struct error *err)
{
    const struct options *o = &sh->opt;
    struct fleet_repaired n = {0};
    struct ticker ticker;
    struct fleet_repair how = {
        .older_s = 3600, .limit_s = (unsigned)sh->dev.fleet_repair_s, .progress = show_repair, .ctx = &ticker};
    int rc = no_arguments(o, err);
    if (rc == 0 && o->older_than)
        rc = read_time("--older-than", o->older_than, &how.older_s, err);
    if (rc < 0)
        return rc;
    ticker_start(&ticker, "Repairing", false);
    rc = fleet_repair(f, &how, &n, err);
    ticker_stop(&ticker);
    if (rc == 0 || n.copied + n.settled + n.removed)
        fprintf(stderr, "%" PRIu64 " traces copied, %" PRIu64 " commits given, %" PRIu64 " loads removed\n", n.copied,
                n.settled, n.removed);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(struct shell *sh, struct fleet *f, struct error *err);
} actions[] = {{"init", NULL},         {"add", run_add},   {"query", run_query},
               {"status", run_status}, {"drop", run_drop}, {"repair", run_repair}};
enum { N_ACTIONS = sizeof actions / sizeof *actions };

static int run_action(struct shell *sh, size_t i, struct error *err)
{
    struct fleet *f = NULL;
    struct addresses a;
    if (!actions[i].run)
        return run_init(sh, err);
    int rc = read_addresses(&sh->opt, &a, err);
    struct fleet_where w = where(sh, &a);
    if (rc == 0)
        rc = read_timeout(&sh->opt, &w.user_ms, err);
    if (rc == 0)
        rc = fleet_open(&f, &w, err);
    if (rc == 0)
        rc = actions[i].run(sh, f, err);
    fleet_close(f);
    mem_free(a.owned);
    return rc;
}

int cmd_fleet(struct shell *sh, struct error *err)
{
    static const char *const names[N_ACTIONS] = {"init", "add", "query", "status", "drop", "repair"};
    const struct text_list *args = &sh->opt.positionals;
    if (args->n == 0)
        return error_set(err, -MRD_EINVALID, "fleet: say what to do: init, add, query, status, drop or repair");
    for (size_t i = 0; i < N_ACTIONS; i++)
        if (strcmp(args->p[0], actions[i].name) == 0)
            return run_action(sh, i, err);
    return suggest_refuse(err, "fleet", args->p[0], names, N_ACTIONS);
}
