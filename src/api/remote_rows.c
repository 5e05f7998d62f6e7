/* Rows of an answer that comes in batches. */
#include "api/remote_internal.h"

#include <inttypes.h>
#include <stdio.h>

struct remote_cell {
    enum tp_type type;
    int64_t i;
    double d;
    const char *p; /* a text ends with NUL */
    size_t len;
    char number[40]; /* a number as text, when asked for */
};

struct remote_rows {
    struct exchange x;
    bool by_statement;
    bool over; /* the last one has */
    size_t tail;
    bool executed;
    struct tp_statements statements;
    VEC(char *)
    names;
    struct remote_cell *row;

    /* the batch that is being read */
    struct rpc_message message;
    struct slice kinds;
    struct pb_cursor ints, blobs;
    struct slice doubles, strings;
    struct slice error; /* that ends the answer */
};

/* ---- messages ---- */

static void take_batch(struct remote_rows *w, struct slice batch)
{
    struct pb_cursor c = pb_cursor(batch);
    struct pb_field f;
    w->blobs = c;
    while (pb_next(&c, &f)) {
        if (f.id == BATCH_CELLS)
            w->kinds = pb_bytes(&f);
        else if (f.id == BATCH_VARINTS)
            w->ints = pb_sub(&f);
        else if (f.id == BATCH_DOUBLES)
            w->doubles = pb_bytes(&f);
        else if (f.id == BATCH_STRINGS)
            w->strings = pb_bytes(&f);
        else if (f.id == BATCH_IS_LAST)
            w->over |= pb_bool(&f);
    }
}

static int take_result(struct remote_rows *w, struct slice result, struct error *err)
{
    struct pb_cursor c = pb_cursor(result);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        char *name;
        switch (f.id) {
        case QUERY_COLUMN_NAMES:
            if (w->row) /* it has room for the columns of the first message */
                return error_set(err, -MRD_EFORMAT, "the server's reply is malformed: column names between rows");
            name = mem_strndup((const char *)pb_bytes(&f).p, pb_bytes(&f).len);
            if (!name || !vec_push(&w->names, name)) {
                mem_free(name);
                return error_set(err, -MRD_ENOMEM, "out of memory");
            }
            break;
        case QUERY_ERROR:
            w->error = pb_bytes(&f);
            break;
        case QUERY_BATCH:
            take_batch(w, pb_bytes(&f));
            break;
        case QUERY_STATEMENT_COUNT:
            w->statements.count = pb_u32(&f);
            break;
        case QUERY_WITH_OUTPUT_COUNT:
            w->statements.with_output = pb_u32(&f);
            break;
        case QUERY_LAST_SQL:
            w->statements.last_len = pb_bytes(&f).len;
            break;
        }
    }
    return c.bad ? error_set(err, -MRD_EFORMAT, "the server's reply is malformed") : 0;
}

static int take_statement(struct remote_rows *w, struct slice result, struct error *err)
{
    struct pb_cursor c = pb_cursor(result);
    struct pb_field f;
    int rc = 0;
    while (rc == 0 && pb_next(&c, &f)) {
        if (f.id == STATEMENT_RESULT_QUERY)
            rc = take_result(w, pb_bytes(&f), err);
        else if (f.id == STATEMENT_RESULT_TAIL)
            w->tail = pb_u32(&f);
        else if (f.id == STATEMENT_RESULT_EXECUTED)
            w->executed = pb_bool(&f);
    }
    return rc;
}

/* The next message's batch takes the place of the one before. */
static int read_message(struct remote_rows *w, struct error *err)
{
    struct pb_field f;
    mem_free(w->message.p);
    w->message = (struct rpc_message){0};
    w->kinds = w->doubles = w->strings = slice_of(NULL, 0);
    w->ints = w->blobs = pb_cursor(slice_of(NULL, 0));
    int rc = exchange_next(&w->x, &w->message, err);
    if (rc < 0)
        return rc;
    struct slice bytes = slice_of(w->message.p, w->message.len);
    if (pb_find(bytes, w->by_statement ? RPC_STATEMENT_RESULT : RPC_QUERY_RESULT, &f))
        rc = w->by_statement ? take_statement(w, pb_bytes(&f), err) : take_result(w, pb_bytes(&f), err);
    else if (pb_find(bytes, RPC_FATAL_ERROR, &f))
        rc = remote_failed(w->x.remote, pb_bytes(&f), err);
    else
        rc = error_set(err, -MRD_EUNSUPPORTED, "the server does not know the request");
    if (w->over)
        exchange_end(&w->x, true);
    return rc;
}

/* ---- cells ---- */

static bool take_text(struct remote_rows *w, struct remote_cell *c)
{
    const uint8_t *end = w->strings.len ? memchr(w->strings.p, '\0', w->strings.len) : NULL;
    if (!end)
        return false;
    c->p = (const char *)w->strings.p;
    c->len = (size_t)(end - w->strings.p);
    w->strings.p += c->len + 1;
    w->strings.len -= c->len + 1;
    return true;
}

static bool take_cell(struct remote_rows *w, struct remote_cell *c, uint8_t kind)
{
    struct pb_field f;
    uint64_t u;
    switch (kind) {
    case CELL_NULL:
        c->type = TP_NULL;
        return true;
    case CELL_VARINT:
        c->type = TP_INT64;
        if (!pb_next_packed(&w->ints, &u))
            return false;
        c->i = (int64_t)u;
        return true;
    case CELL_DOUBLE:
        c->type = TP_DOUBLE;
        if (w->doubles.len < sizeof c->d)
            return false;
        memcpy(&c->d, w->doubles.p, sizeof c->d);
        w->doubles.p += sizeof c->d;
        w->doubles.len -= sizeof c->d;
        return true;
    case CELL_STRING:
        c->type = TP_TEXT;
        return take_text(w, c);
    case CELL_BLOB:
        c->type = TP_BLOB;
        while (pb_next(&w->blobs, &f))
            if (f.id == BATCH_BLOB) {
                c->p = (const char *)f.p;
                c->len = pb_bytes(&f).len;
                return true;
            }
        return false;
    }
    return false;
}

static int step(void *rows, struct error *err)
{
    struct remote_rows *w = rows;
    size_t n = w->names.n;
    while (n == 0 || w->kinds.len < n) {
        if (w->error.p)
            return remote_failed(w->x.remote, w->error, err);
        if (w->over)
            return 0;
        int rc = read_message(w, err);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < n; i++)
        if (!take_cell(w, &w->row[i], w->kinds.p[i]))
            return error_set(err, -MRD_EFORMAT, "the server's reply is malformed: a cell is missing");
    w->kinds.p += n;
    w->kinds.len -= n;
    return 1;
}

/* ---- questions ---- */

static int send_query(struct remote_rows *w, struct remote *r, struct slice sql, size_t offset, struct error *err)
{
    struct pb_writer args = {0};
    size_t mark = pb_begin(&args, w->by_statement ? RPC_STATEMENT_ARGS : RPC_QUERY_ARGS);
    pb_put_bytes(&args, w->by_statement ? STATEMENT_ARGS_SQL : QUERY_ARGS_SQL, sql.p, sql.len);
    if (w->by_statement)
        pb_put_varint(&args, STATEMENT_ARGS_OFFSET, offset);
    pb_end(&args, mark);
    int rc = args.failed || sql.len > RPC_MAX_MESSAGE / 2
                 ? error_set(err, -MRD_ELIMIT, "the SQL text is too long to be sent")
                 : exchange_begin(&w->x, r, w->by_statement ? RPC_STATEMENT_STREAMING : RPC_QUERY_STREAMING,
                                  pb_written(&args), err);
    pb_writer_free(&args);
    return rc;
}

/* A statement that fails before its first row fails at once, as it does without a server. */
static int begin(struct remote_rows *w, struct error *err)
{
    int rc = read_message(w, err);
    if (rc == 0 && w->error.p && w->kinds.len == 0)
        rc = remote_failed(w->x.remote, w->error, err);
    if (rc < 0)
        return rc;
    size_t n = w->names.n ? w->names.n : 1;
    w->row = mem_zalloc(n * sizeof *w->row);
    return w->row ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

int remote_query(struct remote *r, struct slice sql, size_t *at, struct remote_rows **out, struct error *err)
{
    struct remote_rows *w = *out = mem_zalloc(sizeof *w);
    if (!w)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    w->by_statement = at != NULL;
    int rc = send_query(w, r, sql, at ? *at : 0, err);
    if (rc == 0)
        rc = begin(w, err);
    if (rc == 0 && at) {
        rc = w->executed;
        w->statements.last_at = *at;
        *at = w->executed ? w->tail : sql.len;
    }
    if (rc < 0 || (at && rc == 0)) {
        remote_rows_close(w);
        *out = NULL;
    }
    return rc;
}

/* ---- values ---- */

static int columns(const void *rows)
{
    const struct remote_rows *w = rows;
    return (int)w->names.n;
}

static const char *column_name(const void *rows, int column)
{
    const struct remote_rows *w = rows;
    return w->names.p[column];
}

void remote_statements(const struct remote_rows *w, struct tp_statements *out)
{
    *out = w->statements;
}

static enum tp_type type(const void *rows, int column)
{
    const struct remote_rows *w = rows;
    return w->row[column].type;
}

/* As SQLite does it: the server may have sent any double, and C knows no integer for most of them. */
static int64_t saturate(double d)
{
    static const double beyond = 9223372036854775808.0; /* 2^63 */
    if (d >= beyond)
        return INT64_MAX;
    if (d < -beyond)
        return INT64_MIN;
    return d == d ? (int64_t)d : 0;
}

static int64_t int64(const void *rows, int column)
{
    const struct remote_rows *w = rows;
    const struct remote_cell *c = &w->row[column];
    return c->type == TP_INT64 ? c->i : c->type == TP_DOUBLE ? saturate(c->d) : 0;
}

static double dbl(const void *rows, int column)
{
    const struct remote_rows *w = rows;
    const struct remote_cell *c = &w->row[column];
    return c->type == TP_DOUBLE ? c->d : c->type == TP_INT64 ? (double)c->i : 0;
}

static const char *bytes(void *rows, int column, size_t *len)
{
    struct remote_rows *w = rows;
    struct remote_cell *c = &w->row[column];
    const char *p = NULL;
    size_t n = 0;
    if (c->type == TP_TEXT || c->type == TP_BLOB) {
        p = c->p;
        n = c->len;
    } else if (c->type != TP_NULL) {
        p = c->number;
        n = (size_t)(c->type == TP_INT64 ? snprintf(c->number, sizeof c->number, "%" PRId64, c->i)
                                         : snprintf(c->number, sizeof c->number, "%.15g", c->d));
    }
    if (len)
        *len = n;
    return p;
}

void remote_rows_close(struct remote_rows *w)
{
    if (!w)
        return;
    exchange_end(&w->x, false);
    framer_free(&w->x.framer);
    for (size_t i = 0; i < w->names.n; i++)
        mem_free(w->names.p[i]);
    vec_free(&w->names);
    mem_free(w->row);
    mem_free(w->message.p);
    mem_free(w);
}

static void close_rows(void *rows)
{
    remote_rows_close(rows);
}

const struct row_source remote_source = {columns, column_name, step, type, int64, dbl, bytes, close_rows};
