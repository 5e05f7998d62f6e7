/* Query results, encoded batch by batch while the rows are stepped: never more than one batch in memory. */
#include "server/batches.h"
#include "base/clock.h"

#include "base/alloc.h"
#include "rpc/wire.h"
#include "wire/pb_cursor.h"

#include <stdio.h>
#include <time.h>

enum { MAX_KEPT_BYTES = 4 * BATCH_ENOUGH_BYTES }; /* what one huge cell took is given back */

void batch_pools_free(struct batch_pools *p)
{
    pb_writer_free(&p->strings);
    pb_writer_free(&p->varints);
    pb_writer_free(&p->doubles);
    pb_writer_free(&p->blobs);
    mem_free(p->cells);
    *p = (struct batch_pools){0};
}

/* ---- answers ---- */

static char no_memory[] = "out of memory"; /* told even when there is none for a copy */

static const char blocked_others[] =
    "interrupted: other clients were waiting for this statement. Query less at once, or load the trace yourself "
    "(tp_shell query, a server of your own)";

static void take_error(struct answer *a, const char *text)
{
    if (a->overdue && atomic_load(a->overdue))
        text = blocked_others;
    a->error = mem_strdup(text && text[0] ? text : "Unknown error");
    if (!a->error)
        a->error = no_memory;
}

static bool begin(struct answer *a, struct tp *tp, struct slice sql)
{
    *a = (struct answer){.overdue = a->overdue, .tp = tp, .start_ns = clock_now_ns(CLOCK_MONOTONIC)};
    a->sql = mem_strndup((const char *)sql.p, sql.len);
    a->sql_len = sql.len;
    if (!tp || !a->sql)
        take_error(a, tp ? no_memory : "no trace is loaded");
    return !a->error;
}

void answer_query(struct answer *a, struct tp *tp, struct slice sql)
{
    if (!begin(a, tp, sql))
        return;
    if (tp_query(tp, a->sql, &a->r) < 0)
        take_error(a, tp_error(tp));
    else
        tp_result_statements(a->r, &a->statements);
}

void answer_statement(struct answer *a, struct tp *tp, struct slice sql, size_t *offset, bool *executed)
{
    *executed = false;
    if (!begin(a, tp, sql))
        return;
    if (*offset > sql.len) {
        take_error(a, "StatementArgs.start_offset out of range");
        return;
    }
    int rc = tp_query_next(tp, NULL, a->sql, sql.len, offset, &a->r);
    if (rc < 0)
        take_error(a, tp_error(tp));
    *executed = rc == 1;
    if (rc == 1)
        tp_result_statements(a->r, &a->statements);
}

void answer_error(struct answer *a, const char *error)
{
    *a = (struct answer){.overdue = a->overdue, .start_ns = clock_now_ns(CLOCK_MONOTONIC)};
    take_error(a, error);
}

void answer_cut(struct answer *a, const char *error)
{
    tp_result_close(a->r);
    a->r = NULL;
    a->row = false;
    if (!a->error)
        take_error(a, error);
}

void answer_free(struct answer *a)
{
    tp_result_close(a->r);
    mem_free(a->sql);
    if (a->error != no_memory)
        mem_free(a->error);
    *a = (struct answer){.overdue = a->overdue};
}

/* ---- batches ---- */

static void clear(struct batch_pools *p)
{
    pb_writer_clear(&p->strings);
    pb_writer_clear(&p->varints);
    pb_writer_clear(&p->doubles);
    pb_writer_clear(&p->blobs);
    p->n_cells = 0;
    if (!p->cells)
        p->cells = mem_alloc(BATCH_MAX_CELLS);
}

static size_t size_of(const struct batch_pools *p)
{
    return p->strings.n + p->varints.n + p->doubles.n + p->blobs.n + p->n_cells;
}

static void put_cell(struct batch_pools *p, const struct tp_result *r, int column)
{
    static const uint8_t cells[] = {
        [TP_NULL] = CELL_NULL,   [TP_INT64] = CELL_VARINT, [TP_DOUBLE] = CELL_DOUBLE,
        [TP_TEXT] = CELL_STRING, [TP_BLOB] = CELL_BLOB,
    };
    enum tp_type type = tp_column_type(r, column);
    size_t len;
    p->cells[p->n_cells++] = cells[type];
    switch (type) {
    case TP_NULL:
        break;
    case TP_INT64:
        pb_put_raw_varint(&p->varints, (uint64_t)tp_int64(r, column));
        break;
    case TP_DOUBLE: {
        double value = tp_double(r, column);
        pb_put_raw(&p->doubles, &value, sizeof value);
        break;
    }
    case TP_TEXT: { /* the NUL is the separator: a text ends at its first */
        const char *text = tp_text(r, column, &len);
        pb_put_raw(&p->strings, text, strnlen(text, len));
        pb_put_raw(&p->strings, "", 1);
        break;
    }
    case TP_BLOB: {
        const void *blob = tp_blob(r, column, &len);
        pb_put_bytes(&p->blobs, BATCH_BLOB, blob ? blob : "", len);
        break;
    }
    }
}

/* Rows until the batch is full or they end. A row is never divided. */
static void fill(struct answer *a, struct batch_pools *p)
{
    size_t n = a->r ? (size_t)tp_columns(a->r) : 0;
    int rc = 0;
    while (n && !a->error) {
        if (!a->row && (rc = tp_step(a->r)) != 1)
            break;
        a->row = true;
        if (p->n_cells + n > BATCH_MAX_CELLS || size_of(p) > BATCH_ENOUGH_BYTES)
            return;
        for (size_t c = 0; c < n; c++)
            put_cell(p, a->r, (int)c);
        a->row = false;
    }
    if (rc < 0)
        take_error(a, tp_error(a->tp));
    a->done = true;
}

/* Doubles begin at a multiple of eight bytes of the message, so that a reader can use them in place: a field that
 * nobody reads makes up for the rest. */
static void put_doubles(struct pb_writer *w, const struct pb_writer *doubles)
{
    uint8_t len[10];
    size_t head = 1 + pb_encode_varint(len, doubles->n);
    size_t pad = (8 - (w->n + head) % 8) % 8;
    if (pad == 1)
        pad = 9;
    if (pad) {
        static const uint8_t tag = BATCH_PADDING << 3 | PB_VARINT;
        static const uint8_t zero[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
        pb_put_raw(w, &tag, 1);
        pb_put_raw(w, zero + sizeof zero - (pad - 1), pad - 1);
    }
    pb_put_bytes(w, BATCH_DOUBLES, doubles->p, doubles->n);
}

static void put_batch(struct pb_writer *w, const struct batch_pools *p, bool last)
{
    size_t batch = pb_begin(w, QUERY_BATCH);
    pb_put_bytes(w, BATCH_STRINGS, p->strings.p, p->strings.n);
    if (p->n_cells)
        pb_put_bytes(w, BATCH_CELLS, p->cells, p->n_cells);
    if (p->varints.n)
        pb_put_bytes(w, BATCH_VARINTS, p->varints.p, p->varints.n);
    if (p->doubles.n)
        put_doubles(w, &p->doubles);
    pb_put_raw(w, p->blobs.p, p->blobs.n);
    if (last)
        pb_put_varint(w, BATCH_IS_LAST, 1);
    pb_end(w, batch);
}

static void put_beginning(struct answer *a, struct pb_writer *w)
{
    int n = a->r ? tp_columns(a->r) : 0;
    for (int c = 0; c < n; c++)
        pb_put_str(w, QUERY_COLUMN_NAMES, tp_column_name(a->r, c));
    pb_put_varint(w, QUERY_STATEMENT_COUNT, a->statements.count);
    pb_put_varint(w, QUERY_WITH_OUTPUT_COUNT, a->statements.with_output);
    if (a->sql && a->statements.last_len)
        pb_put_bytes(w, QUERY_LAST_SQL, a->sql + a->statements.last_at, a->statements.last_len);
    a->begun = true;
}

void answer_next(struct answer *a, struct batch_pools *p, struct pb_writer *w)
{
    clear(p);
    if (!p->cells)
        answer_cut(a, no_memory);
    fill(a, p);
    bool failed = p->strings.failed || p->varints.failed || p->doubles.failed || p->blobs.failed;
    if (failed || size_of(p) > RPC_MAX_MESSAGE - (64 << 10)) {
        char text[128];
        snprintf(text, sizeof text, "The query ended up with a response that is too big (%zu bytes)", size_of(p));
        answer_cut(a, failed ? no_memory : text);
        batch_pools_free(p);
        a->done = true;
    }
    if (!a->begun)
        put_beginning(a, w);
    if (a->error)
        pb_put_text(w, QUERY_ERROR, slice_str(a->error));
    put_batch(w, p, a->done);
    if (size_of(p) > MAX_KEPT_BYTES)
        batch_pools_free(p);
    pb_put_double(w, QUERY_ELAPSED_MS, (double)(clock_now_ns(CLOCK_MONOTONIC) - a->start_ns) / 1e6);
}
