/* Rows of a statement that is a plan as a whole, handed out without SQLite in between: those of the answer, or of a
 * scan, which goes on as they are asked for. A scan that meets what it has not foreseen leaves the rest to SQLite. */
#include "base/alloc.h"
#include "sql/plan/join_private.h"
#include "sql/plan/varied.h"
#include "sql/planner/schema.h"

#include <string.h>

enum { AHEAD = 256 }; /* rows of an answer that are unpacked at a time */

/* A text that is not there as such: a number's, or one of a snapshot. */
struct copy {
    char *p;
    size_t cap;
};

struct plan_output {
    struct engine *e;
    sqlite3_stmt *stmt;      /* borrowed */
    struct query_plan *plan; /* of the statement */
    uint32_t n_columns;
    uint8_t kinds[PLAN_MAX_ITEMS]; /* enum col_type */
    int64_t nulls[PLAN_MAX_ITEMS]; /* of these */
    bool plain[PLAN_MAX_ITEMS];    /* every value is of that type: the word is all there is to know */
    const int64_t *words[PLAN_MAX_ITEMS];
    uint32_t at, n; /* the row at hand in `words`, and how many there are */
    uint64_t given; /* rows, with the one at hand */

    struct plan_answer answer; /* of a plan that is no scan */
    uint32_t next;             /* its first row behind `words` */
    int64_t *ahead;            /* [n_columns][AHEAD] */

    struct run run; /* of a scan: run.plan is NULL for others */
    struct scan scan;
    uint64_t skip, left;       /* rows that OFFSET leaves out, and that LIMIT still allows */
    struct schema_stamp stamp; /* when it was opened */
    /* columns of a scan whose texts are put together for the rows at hand: words are their places + 1 */
    struct format_text made;
    int64_t *places[PLAN_MAX_ITEMS]; /* NULL: another column */
    bool by_sqlite;                  /* the rest comes from `stmt` */
    uint32_t rows[BATCH + AHEAD];

    struct copy copies[PLAN_MAX_ITEMS];
    int failed;            /* SQLite's code of a value that could not be read; told instead of the next row */
    sqlite3_stmt *convert; /* SELECT ?1: a number out of a text, as SQLite reads it */
};

void plan_output_close(struct plan_output *o)
{
    if (!o)
        return;
    for (uint32_t i = 0; i < o->n_columns; i++)
        mem_free(o->copies[i].p);
    scan_close(&o->scan);
    if (o->run.plan)
        run_close(&o->run);
    plan_answer_free(&o->answer);
    for (uint32_t i = 0; i < o->n_columns; i++)
        mem_free(o->places[i]);
    mem_free(o->made.p);
    mem_free(o->ahead);
    sqlite3_finalize(o->convert);
    mem_free(o);
}

/* ---- rows ---- */

static int error_of(struct plan_output *o, int rc, struct error *err)
{
    if (rc == SQLITE_NOMEM)
        return engine_sqlite_error(o->e, rc, err);
    engine_interrupt_clear(o->e);
    engine_set_error_text(o->e, "interrupted");
    return error_set(err, -MRD_ECANCELLED, "interrupted");
}

/* A text that lies in `made`: its length, then the text with a NUL. */
static struct slice made_text(const struct plan_output *o, int64_t word)
{
    uint32_t len;
    memcpy(&len, o->made.p + word - 1, sizeof len);
    return slice_of(o->made.p + word - 1 + sizeof len, len);
}

enum { MOST_MADE = 64 << 20 };

/* The texts of a column for the rows of a batch. They do not go into the string pool. */
static void make_texts(struct plan_output *o, uint32_t column, const struct batch *b)
{
    const struct plan_expr *x = o->run.plan->items[column].expr;
    const int64_t *args[PLAN_MAX_CALL_ARGS] = {NULL};
    for (uint32_t k = 0; k < x->n_args; k++)
        args[k] = eval(&o->run, x->args[k], b);
    for (uint32_t i = 0; i < b->n && !o->run.rc; i++) {
        uint32_t len = 0;
        size_t at = o->made.n;
        o->made.n += sizeof len; /* format_make() makes room for what comes behind */
        enum format_result done = format_make(x, &o->e->storage->strings, args, i, &o->made);
        o->places[column][i] = 0;
        if (done == FORMAT_NULL) {
            o->made.n = at;
            continue;
        }
        if (done != FORMAT_TEXT || o->made.n > MOST_MADE) {
            o->run.rc = done == FORMAT_NO_MEMORY ? SQLITE_NOMEM : RUN_GAVE_UP;
            return;
        }
        len = (uint32_t)(o->made.n - at - sizeof len);
        memcpy(o->made.p + at, &len, sizeof len);
        o->made.p[o->made.n++] = 0;
        o->places[column][i] = (int64_t)at + 1;
    }
}

/* The words of the columns for the rows at hand. */
static void read_columns(struct plan_output *o, const struct batch *b)
{
    o->made.n = 0;
    for (uint32_t i = 0; i < o->n_columns && !o->run.rc; i++) {
        if (o->places[i]) {
            make_texts(o, i, b);
            o->words[i] = o->places[i];
        } else {
            o->words[i] = eval(&o->run, o->run.plan->items[i].expr, b);
        }
    }
}

/* The next chunk of a scan in which a row passes; false: the end, or run.rc. */
static bool scan_on(struct plan_output *o)
{
    const struct plan_step *s = &o->run.plan->steps[0];
    uint32_t keep[BATCH];
    o->at = o->n = 0;
    while (!o->n && o->left && scan_next(&o->run, &o->scan, s->source, o->rows, &o->n)) {
        struct batch b = {.n = o->n, .serial = ++o->run.serial};
        b.rows[s->source] = o->rows;
        if (s->n_where && o->n) {
            o->n = eval_filter(&o->run, s->where, s->n_where, &b, keep);
            for (uint32_t i = 0; i < o->n; i++)
                o->rows[i] = o->rows[keep[i]];
        }
        uint32_t skipped = o->n < o->skip ? o->n : (uint32_t)o->skip;
        o->skip -= skipped;
        o->n = o->n - skipped < o->left ? o->n - skipped : (uint32_t)o->left;
        o->left -= o->n;
        if (skipped)
            memmove(o->rows, o->rows + skipped, o->n * sizeof *o->rows);
        b.n = o->n;
        b.serial = ++o->run.serial;
        if (o->n)
            read_columns(o, &b);
    }
    o->n = o->run.rc ? 0 : o->n;
    return o->n;
}

static bool unpack(struct plan_output *o)
{
    const struct plan_answer *a = &o->answer;
    o->at = 0;
    for (o->n = 0; o->n < AHEAD && o->next < a->n; o->n++, o->next++)
        o->rows[o->n] = a->rows ? a->rows[a->first + o->next] : a->first + o->next;
    for (uint32_t i = 0; i < o->n_columns; i++) {
        int64_t *out = o->ahead + (size_t)i * AHEAD;
        column_gather(&a->table->columns[i], o->rows, o->n, out);
        o->words[i] = out;
    }
    return o->n;
}

/* SQLite gives all rows; those that are known are passed over. The scan holds its table, but SQLite looks for the names
 * again, and would go on in another table when that was replaced meanwhile. */
static int let_sqlite(struct plan_output *o, struct error *err)
{
    static const char changed[] =
        "a table, view or function was replaced while the rows of the statement were read; run it again";
    struct schema_stamp now;
    int rc = 1;
    if (!schema_stamp(o->e, &now))
        return error_of(o, SQLITE_NOMEM, err);
    if (!schema_stamp_is_equal(&o->stamp, &now)) {
        engine_set_error_text(o->e, changed);
        return error_set(err, -MRD_ESQL, "%s", changed);
    }
    o->by_sqlite = o->plan->gave_up = true;
    for (uint64_t i = 0; i <= o->given && rc == 1; i++)
        rc = engine_step(o->e, o->stmt, err);
    return rc;
}

int plan_output_next(struct plan_output *o, struct error *err)
{
    if (o->failed)
        return error_of(o, o->failed, err);
    if (o->by_sqlite)
        return engine_step(o->e, o->stmt, err);
    if (o->n && ++o->at < o->n) {
        o->given++;
        return 1;
    }
    if (engine_is_interrupted(o->e))
        return error_of(o, SQLITE_INTERRUPT, err);
    bool more = o->run.plan ? scan_on(o) : unpack(o);
    o->given += more;
    if (!more && o->run.rc == RUN_GAVE_UP)
        return let_sqlite(o, err);
    return more ? 1 : o->run.rc ? error_of(o, o->run.rc, err) : 0;
}

/* ---- the beginning ---- */

/* Goes through the scan once; what follows reads the list. */
static void sort_scan(struct run *r, struct scan *s, const struct query_plan *p)
{
    const struct table *t = r->tables[0];
    struct plan_order terms[PLAN_MAX_ORDER];
    uint32_t chunk[BATCH + AHEAD], *rows, n = 0, got;
    if (!run_alloc_rows(r, &rows, s->hi - s->lo))
        return;
    while (scan_next(r, s, 0, chunk, &got)) {
        memcpy(rows + n, chunk, got * sizeof *rows);
        n += got;
    }
    for (uint32_t k = 0; k < p->n_orders; k++)
        terms[k] = (struct plan_order){p->orders[k]->column, p->orders_desc[k]};
    if (!r->rc && !order_rows(t, &r->e->storage->strings, terms, p->n_orders, false, 0, rows, n, engine_stop(r->e)))
        r->rc = engine_gave_up(r->e);
    scan_close(s);
    *s = (struct scan){.rows = rows, .n_rows = n};
}

/* Room for the places of texts that are put together. */
static void open_texts(struct plan_output *o, const struct query_plan *p)
{
    for (uint32_t i = 0; i < o->n_columns && !o->run.rc; i++) {
        const struct plan_expr *x = p->items[i].expr;
        if (x->op != X_CALL || !x->format || x->type != PLAN_TEXT)
            continue;
        o->places[i] = mem_alloc((BATCH + AHEAD) * sizeof *o->places[i]);
        o->run.rc = o->places[i] ? 0 : SQLITE_NOMEM;
    }
}

/* 0, RUN_GAVE_UP or an SQLite code. */
static int open_scan(struct plan_output *o, const struct query_plan *p)
{
    for (uint32_t i = 0; i < o->n_columns; i++)
        o->kinds[i] = (uint8_t)plan_col_type((enum plan_type)p->items[i].expr->type);
    if (!run_open(&o->run, p) || !schema_stamp(o->e, &o->stamp))
        o->run.rc = SQLITE_NOMEM;
    open_texts(o, p);
    if (!o->run.rc)
        run_open_sources(&o->run);
    o->skip = p->offset > 0 ? (uint64_t)p->offset : 0;
    o->left = p->limit < 0 ? UINT64_MAX : (uint64_t)p->limit;
    if (!o->run.rc)
        scan_open(&o->run, &p->steps[0], &o->scan);
    if (!o->run.rc && plan_sorts_rows(p))
        sort_scan(&o->run, &o->scan, p);
    return o->run.rc;
}

static int open_answer(struct plan_output *o, const struct query_plan *p)
{
    o->ahead = mem_alloc((size_t)o->n_columns * AHEAD * sizeof *o->ahead);
    int rc = o->ahead ? plan_run(p, &o->answer) : SQLITE_NOMEM;
    for (uint32_t i = 0; i < o->n_columns && !rc; i++)
        o->kinds[i] = o->answer.table->columns[i].type;
    return rc;
}

static void note_plain(struct plan_output *o, const struct query_plan *p)
{
    for (uint32_t i = 0; i < o->n_columns; i++) {
        const struct plan_expr *x = p->items[i].expr;
        o->plain[i] = !x->varied && !x->mixed && !o->places[i];
        o->nulls[i] = column_null((enum col_type)o->kinds[i]);
    }
}

int plan_output_open(struct engine *e, sqlite3_stmt *stmt, struct plan_output **out, struct error *err)
{
    *out = NULL;
    if (!stmt || e->plan_statement != stmt)
        return 0;
    struct query_plan *p = e->plan;
    struct plan_output *o = mem_zalloc(sizeof *o);
    if (!o)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    o->e = e;
    o->stmt = stmt;
    o->plan = p;
    o->n_columns = p->n_items;
    int rc = plan_is_scan(p) || plan_sorts_rows(p) ? open_scan(o, p) : open_answer(o, p);
    if (rc == 0) {
        note_plain(o, p);
        *out = o;
        return 1;
    }
    plan_output_close(o);
    p->gave_up = rc == RUN_GAVE_UP;
    if (rc == SQLITE_NOMEM)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0; /* whoever steps it is told of an interrupt, too */
}

/* ---- values ---- */

static bool is_varied(const struct plan_output *o, int column)
{
    return o->plan->items[column].expr->varied;
}

static struct varied_value varied_at(const struct plan_output *o, int column)
{
    return varied_value_of(&o->e->storage->strings, o->words[column][o->at]);
}

static bool is_whole(const struct plan_output *o, int column)
{
    return o->plan->items[column].expr->mixed && mixed_is_whole(o->words[column][o->at]);
}

static enum col_type kind_of(const struct plan_output *o, int column)
{
    if (is_varied(o, column))
        return plan_col_type(varied_at(o, column).type);
    return is_whole(o, column) ? COL_I64 : (enum col_type)o->kinds[column];
}

/* Of a text that varies: that of the text that stands for it. */
static int64_t word_of(const struct plan_output *o, int column)
{
    int64_t word = o->words[column][o->at];
    if (is_varied(o, column)) {
        struct varied_value v = varied_at(o, column);
        return v.type == PLAN_TEXT ? word : v.word;
    }
    return is_whole(o, column) ? mixed_integer(word) : word;
}

static struct slice text_of(const struct plan_output *o, int column)
{
    if (is_varied(o, column))
        return varied_at(o, column).text;
    return o->places[column] ? made_text(o, word_of(o, column))
                             : strpool_view(&o->e->storage->strings, (strid)word_of(o, column));
}

static bool is_there(const struct plan_output *o, int column)
{
    return (uint32_t)column < o->n_columns && o->at < o->n;
}

static bool has(const struct plan_output *o, int column)
{
    return is_there(o, column) && word_of(o, column) != column_null(kind_of(o, column));
}

/* Is it a value of a plain column, NULL or not, at the row at hand? Most are. */
static bool is_plain(const struct plan_output *o, int column)
{
    return !o->by_sqlite && is_there(o, column) && o->plain[column];
}

int plan_output_type(const struct plan_output *o, int column)
{
    static const uint8_t types[] = {[COL_U32] = SQLITE_INTEGER,
                                    [COL_I32] = SQLITE_INTEGER,
                                    [COL_I64] = SQLITE_INTEGER,
                                    [COL_F64] = SQLITE_FLOAT,
                                    [COL_STR] = SQLITE_TEXT};
    if (is_plain(o, column))
        return o->words[column][o->at] == o->nulls[column] ? SQLITE_NULL : types[o->kinds[column]];
    if (o->by_sqlite)
        return sqlite3_column_type(o->stmt, column);
    if (!has(o, column))
        return SQLITE_NULL;
    enum col_type kind = kind_of(o, column);
    return kind == COL_STR ? SQLITE_TEXT : kind == COL_F64 ? SQLITE_FLOAT : SQLITE_INTEGER;
}

/* The value in a statement of its own, to be read by SQLite's rules; NULL: no memory, or an interrupt. */
static sqlite3_stmt *to_sqlite(struct plan_output *o, int column)
{
    int rc = o->convert ? SQLITE_OK : sqlite3_prepare_v2(o->e->db, "SELECT ?1", -1, &o->convert, NULL);
    sqlite3_reset(o->convert);
    if (!rc && kind_of(o, column) == COL_STR) {
        struct slice s = text_of(o, column);
        rc = sqlite3_bind_text(o->convert, 1, (const char *)s.p, (int)s.len, SQLITE_TRANSIENT);
    } else if (!rc) {
        rc = sqlite3_bind_double(o->convert, 1, column_f64(word_of(o, column)));
    }
    rc = rc ? rc : sqlite3_step(o->convert);
    if (rc == SQLITE_ROW)
        return o->convert;
    o->failed = rc;
    return NULL;
}

int64_t plan_output_int64(struct plan_output *o, int column)
{
    if (is_plain(o, column) && o->kinds[column] < COL_F64) {
        int64_t word = o->words[column][o->at];
        return word == COL_NULL ? 0 : word;
    }
    if (o->by_sqlite)
        return sqlite3_column_int64(o->stmt, column);
    if (!has(o, column))
        return 0;
    if (kind_of(o, column) != COL_STR && kind_of(o, column) != COL_F64)
        return word_of(o, column);
    sqlite3_stmt *s = to_sqlite(o, column);
    return s ? sqlite3_column_int64(s, 0) : 0;
}

double plan_output_double(struct plan_output *o, int column)
{
    if (o->by_sqlite)
        return sqlite3_column_double(o->stmt, column);
    if (!has(o, column))
        return 0;
    if (kind_of(o, column) == COL_F64)
        return column_f64(word_of(o, column));
    if (kind_of(o, column) != COL_STR)
        return (double)word_of(o, column);
    sqlite3_stmt *s = to_sqlite(o, column);
    return s ? sqlite3_column_double(s, 0) : 0;
}

/* NULL, with *out_len at 0: no memory. */
static const char *copied(struct plan_output *o, int column, const void *text, size_t len, size_t *out_len)
{
    struct copy *c = &o->copies[column];
    if (c->cap <= len) {
        char *p = mem_realloc(c->p, len + 32);
        if (!p) {
            o->failed = SQLITE_NOMEM;
            return NULL;
        }
        c->p = p;
        c->cap = len + 32;
    }
    memcpy(c->p, text, len);
    c->p[len] = '\0';
    *out_len = len;
    return c->p;
}

const char *plan_output_text(struct plan_output *o, int column, size_t *len)
{
    char number[64];
    *len = 0;
    if (o->by_sqlite) {
        const char *text = (const char *)sqlite3_column_text(o->stmt, column);
        *len = text ? (size_t)sqlite3_column_bytes(o->stmt, column) : 0;
        return text;
    }
    if (!has(o, column))
        return NULL;
    int64_t word = word_of(o, column);
    if (o->places[column]) {
        struct slice s = made_text(o, word);
        *len = s.len;
        return (const char *)s.p;
    }
    if (kind_of(o, column) == COL_STR) {
        struct slice s = text_of(o, column);
        if ((strid)word <= o->e->storage->strings.n_base) /* those of a snapshot stand behind each other */
            return copied(o, column, s.p, s.len, len);
        *len = s.len;
        return (const char *)s.p;
    }
    if (kind_of(o, column) == COL_F64)
        sqlite3_snprintf(sizeof number, number, "%!.15g", column_f64(word));
    else
        sqlite3_snprintf(sizeof number, number, "%lld", (long long)word);
    return copied(o, column, number, strlen(number), len);
}
