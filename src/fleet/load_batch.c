/* Sends rows of several traces to the servers of one shard, and makes them count. */
#include "fleet/load_batch.h"

#include "base/clock.h"
#include "export/native.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define COMMIT_COLUMNS                                                                                                 \
    "trace, load, uuid, added, recorded, day, host, path, size, build, label_names, label_values, machines, "          \
    "start_ts, "                                                                                                       \
    "end_ts, lost, errors, import_ms, tables, rows, bytes"

int batch_open(struct batch *b, const struct fleet *f, unsigned shard, uint64_t limit, const char *host)
{
    const size_t n = EXPORT_BLOCK_ROWS;
    *b = (struct batch){.fleet = f, .shard = shard, .limit = limit, .host = host};
    b->nodes = fleet_shard_nodes(f, shard, &b->n_nodes);
    b->tables = mem_zalloc(f->schema.tables.n * sizeof *b->tables);
    b->constant = mem_alloc(2 * n * sizeof *b->constant);
    b->nothing = mem_zalloc(n * sizeof *b->constant);
    b->codes = mem_alloc(n * sizeof *b->codes);
    b->ones = mem_alloc(n);
    if (!b->tables || !b->constant || !b->nothing || !b->codes || !b->ones)
        return -MRD_ENOMEM;
    for (size_t i = 0; i < f->schema.tables.n; i++)
        b->tables[i].batch = b;
    memset(b->ones, 1, n);
    return 0;
}

/* ---- pieces ---- */

static uint64_t table_bytes(const struct batch_table *t)
{
    return (uint64_t)t->full.n * EXPORT_BUFFER_BYTES + (t->out.bytes ? t->out.n : 0);
}

static uint8_t *take_piece(struct batch *b)
{
    return b->idle.n ? b->idle.p[--b->idle.n] : mem_alloc(EXPORT_BUFFER_BYTES);
}

/* A piece that is needed no more. */
static void give_piece(struct batch *b, const uint8_t *piece)
{
    uint8_t *p = (uint8_t *)(uintptr_t)piece;
    if (p && !vec_push(&b->idle, p))
        mem_free(p);
}

/* Keeps a piece that is full, and puts another one in its place. */
static int keep(void *self, const void *bytes, size_t n, struct error *err)
{
    struct batch_table *t = self;
    uint8_t *next = take_piece(t->batch);
    if (!next || !vec_push(&t->full, slice_of(bytes, n))) {
        mem_free(next);
        return fleet_no_memory(err);
    }
    t->out.bytes = next;
    return 0;
}

static bool open_table(struct batch *b, struct batch_table *t)
{
    const struct export_sink sink = {keep, t};
    uint8_t *piece = t->out.bytes ? t->out.bytes : take_piece(b);
    if (piece && !t->out.bytes) {
        export_buffer_begin(&t->out, &sink, piece);
        t->out.kept = true;
    }
    return piece != NULL;
}

/* Half a block is none: takes the table back to so many bytes. */
static void cut_table(struct batch *b, struct batch_table *t, uint64_t size)
{
    while (t->full.n * (uint64_t)EXPORT_BUFFER_BYTES > size) {
        give_piece(b, t->out.bytes);
        t->out.bytes = (uint8_t *)(uintptr_t)t->full.p[--t->full.n].p;
    }
    t->out.n = (size_t)(size - t->full.n * (uint64_t)EXPORT_BUFFER_BYTES);
    t->out.rc = 0;
}

static void empty_table(struct batch *b, struct batch_table *t)
{
    for (size_t i = 0; i < t->full.n; i++)
        give_piece(b, t->full.p[i].p);
    give_piece(b, t->out.bytes);
    vec_clear(&t->full);
    t->out.bytes = NULL;
}

/* Gives the memory of all back. */
static void free_pieces(struct batch *b)
{
    for (size_t i = 0; b->tables && i < b->fleet->schema.tables.n; i++) {
        empty_table(b, &b->tables[i]);
        vec_free(&b->tables[i].full);
    }
    for (size_t i = 0; i < b->idle.n; i++)
        mem_free(b->idle.p[i]);
    vec_free(&b->idle);
    b->held = 0;
}

void batch_close(struct batch *b)
{
    free_pieces(b);
    mem_free(b->tables);
    mem_free(b->constant);
    mem_free(b->nothing);
    mem_free(b->codes);
    mem_free(b->ones);
    vec_free(&b->dictionary);
    vec_free(&b->vectors);
    vec_free(&b->loads);
    click_text_free(&b->commits);
}

static int fail(struct batch *b, int rc)
{
    b->failed = rc;
    free_pieces(b);
    return rc;
}

int batch_ping(struct batch *b)
{
    for (size_t i = 0; i < b->n_nodes && !b->failed; i++) {
        struct click_server quick = b->nodes[i].server;
        quick.limits.silence_ms = 10000;
        quick.limits.total_ms = 10000;
        int rc = click_run(&quick, "SELECT 1", NULL, slice_of(NULL, 0), &b->why);
        if (rc < 0)
            return fail(b, rc);
    }
    return b->failed;
}

/* ---- sending ---- */

static int insert(struct batch *b, const char *sql, const struct slice *data, size_t n)
{
    for (size_t i = 0; i < b->n_nodes; i++) {
        int rc = click_insert(&b->nodes[i].server, sql, data, n, &b->why);
        if (rc < 0)
            return fail(b, rc);
    }
    return 0;
}

/* Says of every load whose rows may be sent that it has begun. */
static int announce(struct batch *b)
{
    struct click_text lines = {0}, sql = {0};
    for (size_t i = 0; i < b->loads.n; i++) {
        struct batch_load *l = &b->loads.p[i];
        if (!l->announced)
            click_putf(&lines, "%" PRId64 "\t%s\t%s\t%d\n", l->load, l->trace, b->host, (int)getpid());
        l->announced = true;
    }
    click_putf(&sql, "INSERT INTO %s_local.begun (load, trace, host, pid) FORMAT TabSeparated", b->fleet->database);
    int rc = lines.bad || sql.bad ? fail(b, error_set(&b->why, -MRD_ENOMEM, "out of memory")) : 0;
    if (rc == 0 && lines.bytes.n) {
        const struct slice data = slice_of(lines.bytes.p, lines.bytes.n);
        b->begun_ns = b->begun_ns ? b->begun_ns : clock_now_ns(CLOCK_BOOTTIME);
        rc = insert(b, click_string(&sql), &data, 1);
    }
    click_text_free(&lines);
    click_text_free(&sql);
    return rc;
}

static int send_table(struct batch *b, size_t table)
{
    struct batch_table *t = &b->tables[table];
    struct click_text sql = {0};
    const uint64_t size = table_bytes(t);
    if (size == 0)
        return 0;
    click_putf(&sql, "INSERT INTO %s_local.`%s_in` FORMAT Native", b->fleet->database,
               b->fleet->schema.tables.p[table].name);
    int rc = sql.bad ? fail(b, error_set(&b->why, -MRD_ENOMEM, "out of memory")) : announce(b);
    if (rc == 0 && !vec_reserve(&t->full, t->full.n + 1))
        rc = fail(b, error_set(&b->why, -MRD_ENOMEM, "out of memory"));
    if (rc == 0) {
        t->full.p[t->full.n] = slice_of(t->out.bytes, t->out.n); /* which is not counted among them */
        rc = insert(b, click_string(&sql), t->full.p, t->full.n + 1);
    }
    click_text_free(&sql);
    if (rc < 0)
        return rc;
    b->held -= size;
    b->sent += size;
    empty_table(b, t);
    return 0;
}

static int send_largest(struct batch *b)
{
    size_t largest = 0;
    for (size_t i = 0; i < b->fleet->schema.tables.n; i++)
        if (table_bytes(&b->tables[i]) > table_bytes(&b->tables[largest]))
            largest = i;
    return send_table(b, largest);
}

/* ---- rows ---- */

int batch_trace_begin(struct batch *b, uint32_t file, const char *trace, struct error *err)
{
    struct batch_load *l = vec_add(&b->loads);
    uint64_t number;
    if (!l)
        return fleet_no_memory(err);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_set(err, -MRD_EIO, "the kernel gives no random numbers");
    l->load = (int64_t)(number >> 1);
    l->file = file;
    memcpy(l->trace, trace, sizeof l->trace);
    return 0;
}

static const struct export_vector *find_vector(const struct export_schema *from, const struct export_block *block,
                                               const struct export_column *c)
{
    for (size_t i = 0; i < from->count; i++)
        if (strcmp(from->columns[i].name, c->name) == 0)
            return from->columns[i].kind == c->kind || (from->columns[i].kind == EXPORT_BYTES && c->kind == EXPORT_TEXT)
                       ? &block->columns[i]
                       : NULL;
    return NULL;
}

/* A column that the source does not have, or has only NULL in (then its kind is not known). */
static struct export_vector no_values(const struct batch *b, bool nullable)
{
    static const struct export_text empty = {"", 0};
    return (struct export_vector){.null = nullable ? b->ones : NULL,
                                  .ints = b->nothing,
                                  .doubles = b->nothing,
                                  .codes = b->nothing,
                                  .dictionary = &empty,
                                  .dictionary_size = 1};
}

/* Texts with '' in place of NULL. */
static int fill_texts(struct batch *b, const struct export_vector *v, size_t rows, struct export_vector *out)
{
    vec_clear(&b->dictionary);
    if (!vec_reserve(&b->dictionary, (size_t)v->dictionary_size + 1))
        return -MRD_ENOMEM;
    if (v->dictionary_size)
        memcpy(b->dictionary.p, v->dictionary, v->dictionary_size * sizeof *v->dictionary);
    b->dictionary.p[v->dictionary_size] = (struct export_text){"", 0};
    for (size_t i = 0; i < rows; i++)
        b->codes[i] = v->null && v->null[i] ? v->dictionary_size : v->codes[i];
    *out = (struct export_vector){
        .codes = b->codes, .dictionary = b->dictionary.p, .dictionary_size = v->dictionary_size + 1};
    return 0;
}

static bool all_null(const struct export_block *block, const struct export_schema *from, const char *name)
{
    for (size_t i = 0; i < from->count; i++)
        if (strcmp(from->columns[i].name, name) == 0)
            return block->columns[i].null && !memchr(block->columns[i].null, 0, block->rows);
    return true;
}

static int fit_column(struct batch *b, const struct export_column *c, const struct export_schema *from,
                      const struct export_block *block, struct export_vector *out, struct error *err)
{
    const struct export_vector *v = find_vector(from, block, c);
    if (!v && !all_null(block, from, c->name))
        return error_set(err, -MRD_EINVALID, "%s: column %s is of another type than the fleet's", from->table, c->name);
    if (!v) {
        *out = no_values(b, c->nullable);
        return 0;
    }
    if (!c->nullable && v->null && memchr(v->null, 1, block->rows))
        return error_set(err, -MRD_EINVALID, "%s: column %s has a NULL, and the fleet's cannot", from->table, c->name);
    *out = *v;
    return 0;
}

static int fit_columns(struct batch *b, const struct fleet_table *t, int64_t month, const struct export_schema *from,
                       const struct export_block *block, const struct export_text *trace, struct error *err)
{
    const struct export_column *machine = &t->columns.p[FLEET_MACHINE];
    int64_t *const numbers[] = {b->constant, b->constant + EXPORT_BLOCK_ROWS};
    const int64_t values[] = {vec_last(&b->loads)->load, month};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < block->rows; i++)
            numbers[k][i] = values[k];
    if (!vec_reserve(&b->vectors, t->columns.n))
        return fleet_no_memory(err);
    struct export_vector *out = b->vectors.p;
    const struct export_vector *named = find_vector(from, block, machine);
    out[FLEET_LOAD] = (struct export_vector){.ints = numbers[0]};
    out[FLEET_MONTH] = (struct export_vector){.ints = numbers[1]};
    out[FLEET_TRACE] = (struct export_vector){.codes = b->nothing, .dictionary = trace, .dictionary_size = 1};
    out[FLEET_MACHINE] = no_values(b, false);
    if (named && fill_texts(b, named, block->rows, &out[FLEET_MACHINE]) < 0)
        return fleet_no_memory(err);
    int rc = 0;
    for (size_t i = FLEET_OWN_COLUMNS; rc == 0 && i < t->columns.n; i++)
        rc = fit_column(b, &t->columns.p[i], from, block, &out[i], err);
    return rc;
}

int batch_put(struct batch *b, size_t table, int64_t month, const struct export_schema *from,
              const struct export_block *block, struct error *err)
{
    const struct fleet_table *t = &b->fleet->schema.tables.p[table];
    struct batch_table *to = &b->tables[table];
    const struct export_text trace = {vec_last(&b->loads)->trace, FLEET_ID_SIZE - 1};
    const struct export_schema schema = {t->name, t->columns.p, t->columns.n};
    const uint64_t before = table_bytes(to);
    if (b->failed)
        return b->failed;
    int rc = open_table(b, to) ? fit_columns(b, t, month, from, block, &trace, err) : fleet_no_memory(err);
    if (rc < 0)
        return rc;
    const struct export_block fitted = {block->rows, b->vectors.p};
    native_put_block(&to->out, &schema, &fitted, true);
    if (to->out.rc < 0) {
        rc = error_set(err, to->out.rc, "%s", to->out.err.text);
        cut_table(b, to, before);
        return rc;
    }
    b->held += table_bytes(to) - before;
    while (rc == 0 && b->held > b->limit)
        rc = send_largest(b);
    if (rc < 0 && err)
        *err = b->why;
    return rc;
}

int batch_trace_end(struct batch *b, const char *line, struct error *err)
{
    struct batch_load *l = vec_last(&b->loads);
    click_putf(&b->commits, "%s\t%" PRId64 "\t", l->trace, l->load);
    click_put(&b->commits, line);
    l->complete = !b->commits.bad;
    return l->complete ? 0 : fleet_no_memory(err);
}

/* ---- the commit ---- */

enum { COMMIT_TRIES = 5 };

static int commit_to(struct batch *b, const struct click_server *s, const char *sql)
{
    int rc = -1;
    for (int i = 0; rc < 0 && i < COMMIT_TRIES; i++) {
        if (i)
            sleep(1);
        rc = click_run(s, sql, NULL, slice_of(b->commits.bytes.p, b->commits.bytes.n), &b->why);
    }
    return rc;
}

int batch_commit(struct batch *b)
{
    struct click_text sql = {0};
    int rc = b->failed;
    for (size_t i = 0; rc == 0 && i < b->fleet->schema.tables.n; i++)
        rc = send_table(b, i);
    if (rc < 0 || b->commits.bytes.n == 0)
        return rc;
    if (b->begun_ns && clock_now_ns(CLOCK_BOOTTIME) - b->begun_ns > BATCH_SECONDS * INT64_C(1000000000))
        return fail(
            b, error_set(&b->why, -MRD_ETIMEOUT, "the rows took more than %d minutes to send", BATCH_SECONDS / 60));
    click_putf(&sql, "INSERT INTO %s_local.commits (" COMMIT_COLUMNS ") FORMAT TabSeparated", b->fleet->database);
    if (sql.bad)
        return fail(b, error_set(&b->why, -MRD_ENOMEM, "out of memory"));
    /* A line that comes twice counts once, so that trying again is harmless; from the first replica that has it on, the
     * traces count, and the others are given it sooner or later (fleet_settle()). */
    size_t reached = 0;
    for (size_t i = 0; i < b->n_nodes; i++)
        reached += commit_to(b, &b->nodes[i].server, click_string(&sql)) == 0;
    click_text_free(&sql);
    if (reached == 0)
        return fail(b, b->why.code ? b->why.code : -MRD_EIO);
    return reached < b->n_nodes;
}
