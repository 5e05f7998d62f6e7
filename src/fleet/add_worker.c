/* A process that imports recordings and sends their rows. */
#include "fleet/add_worker.h"

#include "api/export_source.h"
#include "base/clock.h"
#include "base/memory_limit.h"
#include "fleet/facts.h"
#include "fleet/load_batch.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HELD_BYTES = 32 << 20,   /* of rows, before the largest table is sent */
    BATCH_BYTES = 256 << 20, /* of rows, after which the batch is committed */
    BATCH_TRACES = 500,
    BATCH_BEGIN_SECONDS = 60,  /* after which it takes no more recordings */
    KEPT_BYTES = 512 << 20,    /* that are free in a worker, at most */
    MAX_HEAP_PIECE = 32 << 20, /* the largest threshold that glibc takes */
    HELD_PART = 8,             /* of the worker's memory that rows may have at most */
};

struct worker {
    struct fleet *fleet;
    const struct fleet_add *what;
    const struct fleet_files *files;
    int fd;
    char host[256];
    struct batch *shards;
    struct facts_table *tables; /* of the trace at hand */
    uint64_t bytes;             /* sent or held, of all shards */
    size_t traces;
};

bool worker_send(int fd, const struct worker_message *m)
{
    ssize_t n;
    do
        n = send(fd, m, sizeof *m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *m;
}

bool worker_receive(int fd, struct worker_message *m)
{
    ssize_t n;
    do
        n = recv(fd, m, sizeof *m, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *m;
}

/* The parent has gone: nothing that is not committed may be any more. */
static void say(struct worker *w, struct worker_message m)
{
    if (!worker_send(w->fd, &m))
        _exit(1);
}

static struct worker_message ask(struct worker *w, struct worker_message m)
{
    say(w, m);
    if (!worker_receive(w->fd, &m))
        _exit(1);
    return m;
}

static void say_text(struct worker *w, enum worker_word word, uint32_t file, const char *text, bool unreachable)
{
    struct worker_message m = {.word = word, .file = file, .unreachable = unreachable};
    snprintf(m.text, sizeof m.text, "%s", text);
    say(w, m);
}

/* ---- one recording ---- */

static int load(struct worker *w, const struct fleet_file *file, struct tp **tp, struct error *err)
{
    if (!file->is_directory && file->size == 0)
        return error_set(err, -MRD_EFORMAT, "the file is empty");
    int rc = tp_open(tp, w->what->config);
    if (rc == 0)
        rc = tp_load(*tp, file->path);
    if (rc == 0)
        rc = tp_finish_tables(*tp);
    if (rc == 0)
        return 0;
    const char *text = *tp ? tp_error(*tp) : "out of memory";
    return error_set(err, rc == TP_NOMEM ? -MRD_ENOMEM : -MRD_EFORMAT, "%s", text);
}

/* The rows of one table; *counts is what it has. */
static int put_table(struct worker *w, struct batch *b, size_t at, struct storage *st, const struct facts *f,
                     const char *trace, struct facts_table *counts, struct error *err)
{
    const struct fleet_table *t = &w->fleet->schema.tables.p[at];
    struct made_rows made = {0};
    struct export_source *source;
    struct export_block block;
    *counts = (struct facts_table){.name = t->name};
    int rc = fleet_table_source(t, at, st, trace, &made, &source, err);
    while (source && rc >= 0 && (rc = export_next(source, &block, err)) == 1) {
        uint64_t before = b->sent + b->held;
        rc = batch_put(b, at, facts_month(f), export_source_schema(source), &block, err);
        counts->rows += block.rows;
        counts->bytes += b->sent + b->held - before;
    }
    export_source_close(source);
    made_rows_free(&made);
    return rc < 0 ? rc : 0;
}

static int put_tables(struct worker *w, struct batch *b, uint32_t file, struct storage *st, struct worker_message *m,
                      int64_t import_ms, struct error *err)
{
    const struct fleet_file *f = &w->files->list.p[file];
    struct facts facts;
    struct click_text line = {0};
    size_t n = 0;
    int rc = facts_read(&facts, st, f, err);
    if (rc == 0)
        rc = batch_trace_begin(b, file, m->trace, err);
    for (size_t i = 0; rc == 0 && i < w->fleet->schema.tables.n; i++) {
        rc = put_table(w, b, i, st, &facts, m->trace, &w->tables[n], err);
        m->rows += w->tables[n].rows;
        m->bytes += w->tables[n].bytes;
        n += w->tables[n].rows > 0;
    }
    if (rc == 0 && storage_damage(st))
        rc = error_set(err, -MRD_EFORMAT, "%s", storage_damage(st));
    if (rc == 0) {
        facts_put_line(&line, &facts, w->what, f, w->host, import_ms, w->tables, n);
        rc = line.bad ? fleet_no_memory(err) : batch_trace_end(b, click_string(&line), err);
        memcpy(m->uuid, facts.uuid, sizeof m->uuid);
    }
    click_text_free(&line);
    return rc;
}

static bool is_unreachable(const struct batch *b)
{
    return b->failed != -MRD_ESQL;
}

static void refuse_trace(struct worker *w, const struct batch *b, uint32_t file, const struct error *err)
{
    if (b->failed)
        say_text(w, WORKER_LATER, file, b->why.text, is_unreachable(b));
    else
        say_text(w, err->code == -MRD_ENOMEM ? WORKER_SHORT : WORKER_BAD, file, err->text, false);
}

static void take_file(struct worker *w, uint32_t file)
{
    const struct fleet_file *f = &w->files->list.p[file];
    struct worker_message m = {.word = WORKER_HASH, .file = file};
    struct error err = {0};
    struct tp *tp = NULL;
    if (fleet_file_id(f, m.trace, &err) < 0) {
        say_text(w, WORKER_BAD, file, err.text, false);
        return;
    }
    if (ask(w, m).word == WORKER_SKIP)
        return;
    struct batch *b = &w->shards[fleet_shard_of(w->fleet, m.trace)];
    int64_t started = clock_now_ns(CLOCK_MONOTONIC);
    /* A server that does not answer is found out before the import has been paid for. */
    int rc = b->failed ? b->failed : b->loads.n == 0 ? batch_ping(b) : 0;
    if (rc == 0)
        rc = load(w, f, &tp, &err);
    if (rc == 0)
        rc = put_tables(w, b, file, tp_tables(tp), &m, (clock_now_ns(CLOCK_MONOTONIC) - started) / 1000000, &err);
    tp_close(tp);
    if (rc < 0) {
        refuse_trace(w, b, file, &err);
        return;
    }
    m.word = WORKER_TAKEN;
    say(w, m);
    w->bytes += m.bytes;
    w->traces++;
}

/* ---- the batch ---- */

static void commit(struct worker *w, struct batch *b)
{
    int rc = b->loads.n ? batch_commit(b) : 0;
    for (size_t i = 0; i < b->loads.n; i++) {
        const struct batch_load *l = &b->loads.p[i];
        if (!l->complete)
            continue; /* has been told */
        if (rc < 0)
            say_text(w, WORKER_LATER, l->file, b->why.text, is_unreachable(b));
        else
            say_text(w, rc == 0 ? WORKER_DONE : WORKER_UNSETTLED, l->file, b->why.text, false);
    }
}

/* Then another worker goes on, when the server may answer again. */
static bool any_failed(const struct worker *w)
{
    for (unsigned i = 0; i < w->fleet->n_shards; i++)
        if (w->shards[i].failed)
            return true;
    return false;
}

static bool open_shards(struct worker *w, uint64_t memory)
{
    uint64_t held = memory / HELD_PART / w->fleet->n_shards;
    w->shards = mem_zalloc(w->fleet->n_shards * sizeof *w->shards);
    w->tables = mem_zalloc((w->fleet->schema.tables.n + 1) * sizeof *w->tables);
    bool ok = w->shards && w->tables;
    for (unsigned i = 0; ok && i < w->fleet->n_shards; i++)
        ok = batch_open(&w->shards[i], w->fleet, i, held < HELD_BYTES ? held : HELD_BYTES, w->host) == 0;
    return ok;
}

/* Imports and blocks take and give back the same sizes over and over: giving them to the kernel each time costs a fifth
 * of the processor time of all this, mostly for pages that it clears anew. What is kept is a part of what may be taken.
 */
static void keep_freed_memory(uint64_t bytes)
{
#ifdef __GLIBC__
    const uint64_t kept = bytes / 4 < KEPT_BYTES ? bytes / 4 : KEPT_BYTES;
    mallopt(M_MMAP_THRESHOLD, MAX_HEAP_PIECE);
    mallopt(M_TRIM_THRESHOLD, (int)kept);
#else
    (void)bytes;
#endif
}

_Noreturn void worker_run(struct fleet *f, const struct fleet_add *what, const struct fleet_files *files, int fd,
                          uint64_t memory)
{
    struct worker w = {.fleet = f, .what = what, .files = files, .fd = fd};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* the parent decides what ends when */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (gethostname(w.host, sizeof w.host - 1) < 0)
        w.host[0] = '\0';
    memory_limit(memory);
    keep_freed_memory(memory);
    if (!open_shards(&w, memory))
        _exit(1);
    const int64_t end = clock_now_ns(CLOCK_MONOTONIC) + BATCH_BEGIN_SECONDS * INT64_C(1000000000);
    const size_t traces = what->batch ? what->batch : BATCH_TRACES;
    while (w.bytes < BATCH_BYTES && w.traces < traces && !any_failed(&w) && clock_now_ns(CLOCK_MONOTONIC) < end) {
        struct worker_message m = ask(&w, (struct worker_message){.word = WORKER_NEED});
        if (m.word != WORKER_FILE)
            break;
        take_file(&w, m.file);
    }
    for (unsigned i = 0; i < f->n_shards; i++)
        commit(&w, &w.shards[i]);
    for (unsigned i = 0; i < f->n_shards; i++)
        batch_close(&w.shards[i]);
    mem_free(w.shards);
    mem_free(w.tables);
    _exit(0);
}
