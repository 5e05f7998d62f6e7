/* The order of an index that SQLite makes for one statement (`USING AUTOMATIC COVERING INDEX`): of a query that it has
 * computed first, rows of one key come sorted by all columns of the index, from the first to the last. Which these are
 * depends on what SQLite has taken apart and moved before. Its program (EXPLAIN) says so: behind OpenAutoindex, columns
 * and the number of the row are loaded into registers, from which a record is made that goes into the index. */
#include "sql/plan/plan_private.h"

#include <string.h>

enum { MOST_INDEXES = 16, MOST_COLUMNS = 62 /* SQLite has one bit for all behind them */ };

struct made_index {
    int16_t columns[MOST_COLUMNS]; /* by place: which of the table's */
    uint32_t n;                    /* 0: not understood */
};

struct made_indexes {
    struct made_index at[MOST_INDEXES]; /* as the program opens them */
    uint32_t n;
};

/* ---- the program ---- */

struct instruction {
    const char *name, *p4;
    int p1, p2, p3;
};

/* What has been loaded since the last index was opened. */
struct loading {
    int cursor; /* of the index; -1: it is filled, or there is none */
    int columns[MOST_COLUMNS], into[MOST_COLUMNS];
    uint32_t n;
    int row;           /* the register of the row's number */
    int first, n_made; /* registers of the last record */
};

/* Is each column of the key ascending, and compared as bytes? `k(3,B,,)` */
static bool is_plain_key(const char *key)
{
    const char *at = key ? strchr(key, ',') : NULL;
    if (!at)
        return false;
    for (; *at == ','; at += 1 + (at[1] == 'B'))
        continue;
    return *at == ')';
}

static int column_in(const struct loading *l, int into)
{
    for (uint32_t i = l->n; i-- > 0;)
        if (l->into[i] == into)
            return l->columns[i];
    return -1;
}

static uint32_t columns_of_record(const struct loading *l, int16_t *out)
{
    int n = l->n_made - 1;
    if (n < 1 || n > MOST_COLUMNS || l->row != l->first + n)
        return 0;
    for (int i = 0; i < n; i++) {
        int column = column_in(l, l->first + i);
        if (column < 0 || column > INT16_MAX)
            return 0;
        out[i] = (int16_t)column;
    }
    return (uint32_t)n;
}

/* False: there are more indexes than are looked at. */
static bool follow(struct made_indexes *m, struct loading *l, const struct instruction *x)
{
    if (strcmp(x->name, "OpenAutoindex") == 0) {
        *l = (struct loading){.cursor = is_plain_key(x->p4) ? x->p1 : -1, .row = -1};
        return m->n++ < MOST_INDEXES;
    }
    if (l->cursor < 0)
        return true;
    if (strcmp(x->name, "Column") == 0 && l->n < MOST_COLUMNS) {
        l->columns[l->n] = x->p2;
        l->into[l->n++] = x->p3;
    } else if (strcmp(x->name, "Rowid") == 0) {
        l->row = x->p2;
    } else if (strcmp(x->name, "MakeRecord") == 0) {
        l->first = x->p1;
        l->n_made = x->p2;
    } else if (strcmp(x->name, "IdxInsert") == 0 && x->p1 == l->cursor) {
        struct made_index *made = &m->at[m->n - 1];
        made->n = columns_of_record(l, made->columns);
        l->cursor = -1;
    }
    return true;
}

const struct made_indexes *index_order_read(struct planner *planner, const char *text)
{
    struct made_indexes *m = arena_zalloc(planner->arena, sizeof *m);
    char *sql = m ? sqlite3_mprintf("EXPLAIN %s", text) : NULL;
    sqlite3_stmt *stmt = NULL;
    int rc = sql ? engine_compile(planner->e, sql, -1, 0, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    struct loading l = {.cursor = -1};
    while (rc == SQLITE_OK && stmt && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 1);
        struct instruction x = {name, (const char *)sqlite3_column_text(stmt, 5), sqlite3_column_int(stmt, 2),
                                sqlite3_column_int(stmt, 3), sqlite3_column_int(stmt, 4)};
        rc = name && follow(m, &l, &x) ? SQLITE_OK : SQLITE_FULL;
    }
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? m : NULL;
}

/* ---- the order ---- */

/* The entry of a scope that SQLite calls by that name where rows of the source come from; NULL: none, or two. */
static const struct scope_entry *entry_named(const struct plan_source *s, struct sql_name name)
{
    const struct scope_entry *found = NULL;
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n_printed; k++)
        if (sql_name_equal(s->printed[k], name)) {
            found = s->entries[k];
            n++;
        }
    return n == 1 ? found : NULL;
}

static bool is_among(const struct plan_expr *x, const int16_t *columns, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (x->op == X_COLUMN && x->column == columns[i])
            return true;
    return false;
}

bool index_order_add(struct query_plan *p, const struct index_use *use)
{
    const struct plan_source *s = &p->sources[use->source];
    const struct scope_entry *e = entry_named(s, use->name);
    const struct made_index *made = use->made && use->nth < use->made->n ? &use->made->at[use->nth] : NULL;
    if (!e || !made || !made->n || p->right || s->batches || s->pointer || s->kin || s->table.outline)
        return false;
    for (uint32_t i = 0; i < made->n; i++) {
        const struct scope_column *c = (uint32_t)made->columns[i] < e->n_columns ? &e->columns[made->columns[i]] : NULL;
        struct plan_expr *x = c ? c->expr : NULL;
        if (!c || !c->used) /* some versions of SQLite have NULL in the place of what nobody asks for */
            return false;
        if (x && (!x->sources || is_among(x, use->keys, use->n_keys)))
            continue;
        if (!x || x->mixed || x->sources != 1u << use->source || p->n_index_terms == PLAN_MAX_ORDER)
            return false;
        p->index_terms[p->n_index_terms] = x;
        p->index_loops[p->n_index_terms++] = (uint8_t)p->n_loops;
    }
    return true;
}
