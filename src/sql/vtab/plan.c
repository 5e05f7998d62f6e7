/* xBestIndex: decides which constraints and orderings are taken and what they cost, and writes the plan as text.
 *
 * The text is a list of words: "3>=" a constraint on column 3 whose value is the next argument, "o3" or "o3-" a sort
 * column, "g" equal rows need only be together, "d" one row of each group will do, "s" args: one set. Column -1 is the
 * row number, -2 - k the k-th argument of a table function. */
#include "sql/engine_private.h"
#include "sql/vtab/vtab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NO_CONSTRAINT = -1 };

static const struct {
    const char *name;
    int constraint; /* SQLite's number */
} ops[PLAN_OP_COUNT] = {
#define PLAN_OP(name, text, precedence, constraint) [PLAN_##name] = {text, constraint},
#define SQL_OP(name, text, precedence)
#define SQL_ALIAS(name, text)
#include "base/sql_operators.def"
};

static int plan_op_of(int constraint)
{
    for (int op = 0; op < PLAN_OP_COUNT; op++)
        if (ops[op].constraint == constraint)
            return op;
    return -1;
}

void plan_parse(struct plan *p, const char *text)
{
    memset(p, 0, sizeof *p);
    for (const char *s = text ? text : ""; *s;) {
        size_t len = strcspn(s, " ");
        char *end = NULL;
        if (*s == 'o' && p->n_order < PLAN_MAX_ORDER) {
            long column = strtol(s + 1, &end, 10);
            p->order[p->n_order++] = (struct plan_order){(int16_t)column, *end == '-'};
        } else if (*s == 'g') {
            p->grouped = true;
        } else if (*s == 'd') {
            p->dedupe = true;
        } else if (*s == 's') {
            p->one_set = true;
        } else if (p->n_terms < PLAN_MAX_TERMS) {
            long column = strtol(s, &end, 10);
            for (int op = 0; op < PLAN_OP_COUNT; op++)
                if (strlen(ops[op].name) == len - (size_t)(end - s) &&
                    memcmp(end, ops[op].name, strlen(ops[op].name)) == 0)
                    p->terms[p->n_terms++] = (struct plan_term){(int16_t)column, (uint8_t)op};
        }
        s += len;
        s += *s == ' ';
    }
}

/* ---- estimates ---- */

struct estimate {
    double rows;      /* that match */
    double scanned;   /* that are looked at one after the other to find them */
    double looked_up; /* that an index names, or as many as `scanned` when none does */
    bool unique;
};

/* How many different values a column may have. */
static double distinct_values(const struct table *t, int column)
{
    double n = t->n_rows;
    if (column == VTAB_ROW)
        return n;
    const struct column *c = &t->columns[column];
    if (c->min > c->max) /* all are NULL: nothing is equal to any of them */
        return n < 1 ? 1 : n;
    double guess = c->type == COL_F64 ? n / 4 : (double)c->max - (double)c->min + 1;
    if (c->type == COL_STR && guess > 200)
        guess = 200;
    return guess < 1 ? 1 : guess > n ? n : guess;
}

static bool is_sorted(const struct table *t, int column)
{
    return column == VTAB_ROW || (t->columns[column].sorted && t->columns[column].type != COL_STR);
}

static bool can_index(const struct table *t, int column)
{
    return column >= 0 && t->columns[column].type != COL_F64;
}

static void estimate_term(const struct table *t, struct plan_term term, double in_count, struct estimate *est)
{
    double n = t->n_rows, part;
    bool sorted = is_sorted(t, term.column);
    switch (term.op) {
    case PLAN_EQ:
    case PLAN_IS:
        part = 1 / distinct_values(t, term.column);
        if (sorted)
            est->scanned = fmin(est->scanned, n * part);
        else if (can_index(t, term.column))
            est->looked_up = fmin(est->looked_up, n * part);
        est->unique |= term.column == VTAB_ROW;
        break;
    case PLAN_IN:
        part = fmin(1, in_count / distinct_values(t, term.column));
        if (term.column == VTAB_ROW)
            est->scanned = fmin(est->scanned, n * part);
        break;
    case PLAN_LT:
    case PLAN_LE:
    case PLAN_GT:
    case PLAN_GE:
        part = 0.3;
        if (sorted)
            est->scanned *= part;
        break;
    case PLAN_GLOB:
    case PLAN_ISNULL:
        part = 0.2;
        break;
    default:
        part = 0.9;
    }
    est->rows *= part;
}

/* ---- choosing ---- */

struct choice {
    struct vtab *v;
    sqlite3_index_info *info;
    struct table *t; /* NULL for computed tables */
    sqlite3_str *text;
    struct estimate est;
    int n_args;
    int missing;            /* argument of a table function; 0: all are there */
    uint64_t equal, ranged; /* table columns with such constraints; bit i: column i */
    bool inner;             /* a value comes from elsewhere: another table of a join, most likely */
};

static enum col_type type_of(const struct choice *c, int16_t column)
{
    return column == VTAB_ROW ? COL_U32 : (enum col_type)c->v->source->def->columns[column].type;
}

/* Is the value known by now, and a text? Only then may a test of a string column go without SQLite's own check: against
 * a number, SQLite would compare by other rules than ours. */
static bool is_known_text(const struct choice *c, int i)
{
    sqlite3_value *v = NULL;
    return sqlite3_vtab_rhs_value(c->info, i, &v) == SQLITE_OK && sqlite3_value_type(v) == SQLITE_TEXT;
}

static void take(struct choice *c, int i, struct plan_term term, bool omit)
{
    struct sqlite3_index_constraint_usage *use = &c->info->aConstraintUsage[i];
    use->argvIndex = ++c->n_args;
    use->omit = omit;
    sqlite3_str_appendf(c->text, "%s%d%s", sqlite3_str_length(c->text) ? " " : "", term.column, ops[term.op].name);
}

static bool is_string_op(int op)
{
    return op != PLAN_ISNULL && op != PLAN_NOTNULL;
}

static void consider(struct choice *c, int i)
{
    const struct sqlite3_index_constraint *k = &c->info->aConstraint[i];
    int op = plan_op_of(k->op);
    if (!k->usable || op < 0 || c->n_args >= PLAN_MAX_TERMS || engine_may_be_misread(c->v->engine, k->op))
        return;
    int16_t column = k->iColumn < 0 ? VTAB_ROW : c->v->columns.at[k->iColumn];
    if (column <= VTAB_ARG)
        return; /* arguments are dealt with before */
    enum col_type type = type_of(c, column);
    bool strings = type == COL_STR && is_string_op(op);
    if ((strings && sqlite3_stricmp(sqlite3_vtab_collation(c->info, i), "BINARY") != 0) ||
        (op == PLAN_GLOB && type != COL_STR))
        return;
    double in_count = 1;
    if (op == PLAN_EQ && sqlite3_vtab_in(c->info, i, -1)) {
        sqlite3_vtab_in(c->info, i, 1);
        op = PLAN_IN;
        in_count = 10;
    } else if (op != PLAN_ISNULL && op != PLAN_NOTNULL) {
        sqlite3_value *known = NULL;
        c->inner |= sqlite3_vtab_rhs_value(c->info, i, &known) != SQLITE_OK;
    }
    struct plan_term term = {column, (uint8_t)op};
    take(c, i, term, !strings || (op != PLAN_IN && is_known_text(c, i)));
    if (column >= 0 && column < 64 && (op == PLAN_EQ || op == PLAN_IS))
        c->equal |= 1ull << column;
    else if (column >= 0 && column < 64 && op >= PLAN_LT && op <= PLAN_GE)
        c->ranged |= 1ull << column;
    if (c->t)
        estimate_term(c->t, term, in_count, &c->est);
    else
        c->est.rows *= 0.3;
}

static void take_hint(struct choice *c, int op, enum plan_op term)
{
    for (int i = 0; i < c->info->nConstraint; i++)
        if (c->info->aConstraint[i].op == op && c->info->aConstraint[i].usable)
            take(c, i, (struct plan_term){VTAB_ROW, (uint8_t)term}, false);
}

/* LIMIT tells how many sorted rows are wanted, when no row is dropped after us. SQLite counts on its own all the same.
 */
static void take_limit(struct choice *c)
{
    bool limited = false;
    for (int i = 0; i < c->info->nConstraint; i++) {
        int op = c->info->aConstraint[i].op;
        limited |= op == SQLITE_INDEX_CONSTRAINT_LIMIT;
        if (op != SQLITE_INDEX_CONSTRAINT_LIMIT && op != SQLITE_INDEX_CONSTRAINT_OFFSET &&
            !c->info->aConstraintUsage[i].omit)
            return;
    }
    if (limited && c->n_args + 2 < PLAN_MAX_TERMS) {
        take_hint(c, SQLITE_INDEX_CONSTRAINT_LIMIT, PLAN_LIMIT);
        take_hint(c, SQLITE_INDEX_CONSTRAINT_OFFSET, PLAN_OFFSET);
    }
}

/* Arguments of a table function: each needs an equality that can be used. */
static int take_arguments(struct choice *c)
{
    int n = c->v->source->function ? c->v->source->function->n_args : 0;
    for (int arg = 0; arg < n; arg++) {
        int found = -1;
        for (int i = 0; i < c->info->nConstraint && found < 0; i++) {
            const struct sqlite3_index_constraint *k = &c->info->aConstraint[i];
            if (k->usable && k->op == SQLITE_INDEX_CONSTRAINT_EQ && k->iColumn >= 0 &&
                c->v->columns.at[k->iColumn] == VTAB_ARG - arg)
                found = i;
        }
        if (found < 0) {
            for (int i = 0; i < c->info->nConstraint; i++)
                if (c->info->aConstraint[i].iColumn >= 0 && !c->info->aConstraint[i].usable &&
                    c->v->columns.at[c->info->aConstraint[i].iColumn] == VTAB_ARG - arg)
                    return SQLITE_CONSTRAINT; /* another order of the join can give it */
            /* for a part of an OR SQLite asks without the arguments: such a plan is never the best, and fails when run
             */
            c->missing = arg + 1;
            return SQLITE_OK;
        }
        take(c, found, (struct plan_term){(int16_t)(VTAB_ARG - arg), PLAN_EQ}, true);
    }
    return SQLITE_OK;
}

/* args: an equality on arg_set_id decodes one set, unless the row numbers are wanted, which need all sets. */
static bool take_one_set(struct choice *c)
{
    if (!c->v->source->is_args || (c->info->colUsed & 1))
        return false;
    for (int i = 0; i < c->info->nConstraint; i++) {
        const struct sqlite3_index_constraint *k = &c->info->aConstraint[i];
        if (k->usable && k->op == SQLITE_INDEX_CONSTRAINT_EQ && k->iColumn == args_c_arg_set_id + 1 &&
            !sqlite3_vtab_in(c->info, i, -1)) {
            sqlite3_str_appendall(c->text, "s");
            return true;
        }
    }
    return false;
}

/* Everything used lies in the sort columns: equal rows cannot be told apart, whatever else SQLite checks. */
static bool only_order_columns(const struct choice *c)
{
    sqlite3_uint64 order = 0;
    for (int i = 0; i < c->info->nOrderBy; i++)
        if (c->info->aOrderBy[i].iColumn >= 0 && c->info->aOrderBy[i].iColumn < 63)
            order |= 1ull << c->info->aOrderBy[i].iColumn;
    return (c->info->colUsed & ~order) == 0;
}

static void take_order(struct choice *c)
{
    int n = c->info->nOrderBy;
    if (n < 1 || n > PLAN_MAX_ORDER)
        return;
    struct plan_order order[PLAN_MAX_ORDER];
    for (int i = 0; i < n; i++) {
        int column = c->info->aOrderBy[i].iColumn;
        order[i].column = column < 0 ? VTAB_ROW : c->v->columns.at[column];
        order[i].desc = c->info->aOrderBy[i].desc;
        if (order[i].column <= VTAB_ARG)
            return;
    }
    int mode = sqlite3_vtab_distinct(c->info);
    bool grouped = mode == 2, reverse; /* in mode 1 an ORDER BY of the same columns may rely on the order too */
    for (int i = 0; i < n; i++)
        sqlite3_str_appendf(c->text, " o%d%s", order[i].column, order[i].desc ? "-" : "");
    if (grouped)
        sqlite3_str_appendall(c->text, " g");
    if (mode >= 2 && only_order_columns(c)) {
        sqlite3_str_appendall(c->text, " d");
        c->est.rows = fmin(c->est.rows, 1000);
    }
    if (c->t && !order_is_natural(c->t, order, (uint32_t)n, grouped, &reverse))
        c->est.scanned += c->est.rows * 0.5;
    /* SQLite does not charge a plan for sorting rows of virtual tables, though its sorter costs as much as seven rows
     * for each row: so the plan that saves it is made to look smaller. */
    if (!c->inner)
        c->est.rows *= 0.1;
    c->info->orderByConsumed = 1;
    if (mode == 0)
        take_limit(c);
}

/* What the indexes of CREATE PERFETTO INDEX find with the constraints on their leading columns. */
static void estimate_named(struct choice *c)
{
    for (size_t i = 0; c->t && i < c->v->source->named.n; i++) {
        const struct named_index *x = &c->v->source->named.p[i];
        double rows = c->t->n_rows;
        bool point = true;
        for (uint32_t k = 0; k < x->n_columns && x->columns[k].column < 64 && point; k++) {
            uint64_t bit = 1ull << x->columns[k].column;
            point = (c->equal & bit) != 0;
            if (point)
                rows /= distinct_values(c->t, x->columns[k].column);
            else if (c->ranged & bit)
                rows *= 0.3;
        }
        c->est.looked_up = fmin(c->est.looked_up, rows);
    }
}

int vtab_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    struct vtab *v = (struct vtab *)base;
    struct table *t = v->source->table;
    if (t && !t->final)
        table_finalize(t);
    double n = t ? t->n_rows : v->source->is_args ? 8.0 * args_count(&v->engine->storage->args) : 200;
    struct choice c = {.v = v, .info = info, .t = t, .text = sqlite3_str_new(NULL), .est = {n, n, n, false}};
    int rc = take_arguments(&c);
    if (rc == SQLITE_OK) {
        if (take_one_set(&c))
            c.est = (struct estimate){10, 10, 10, false};
        for (int i = 0; i < info->nConstraint; i++)
            if (!info->aConstraintUsage[i].argvIndex)
                consider(&c, i);
        estimate_named(&c);
        if (c.est.unique)
            info->idxFlags |= SQLITE_INDEX_SCAN_UNIQUE;
        take_order(&c);
        double rows = fmax(c.est.rows, c.est.unique ? 1 : 2); /* only a row number is sure to give one row */
        /* Units: a row handed to SQLite, some 60 ns. A native test costs a thirtieth where rows are in sequence, a
         * tenth where an index names them. */
        double start = c.est.unique ? 1 : 5;
        if (!t && !v->source->is_args)
            start += n; /* a function answers anew each time */
        double find = fmin(c.est.scanned * 0.03, c.est.looked_up * 0.1);
        info->estimatedCost = start + find + rows;
        info->estimatedRows = (sqlite3_int64)rows;
        if (c.est.unique)
            info->estimatedRows = 1;
        if (c.missing)
            info->estimatedCost = 1e99;
        info->idxNum = c.missing;
    }
    if (rc == SQLITE_OK)
        rc = sqlite3_str_errcode(c.text);
    char *text = sqlite3_str_finish(c.text);
    if (rc == SQLITE_OK && text) {
        info->idxStr = text;
        info->needToFreeIdxStr = 1;
    } else {
        sqlite3_free(text);
    }
    return rc;
}
