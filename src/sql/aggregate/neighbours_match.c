/* Owns recognising lead() and lag() over one table, and rewriting them onto __intrinsic_neighbours. */
#include "base/sql_token.h"
#include "sql/aggregate/aggregate_private.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WINDOWS = 8, NOT_THERE = -1 };

struct token {
    enum token_kind kind;
    struct slice s;
};

struct window {
    size_t from, to; /* tokens: the whole expression */
    bool lead;
    int value; /* column */
};

/* SELECT list FROM table [AS alias], from token `select` to `end`. */
struct found {
    size_t from, end; /* tokens: FROM, and the first behind the table and its alias */
    struct slice table, alias;
    struct slice names[AGGREGATE_MAX_COLUMNS]; /* columns that occur */
    int at[AGGREGATE_MAX_COLUMNS];
    int n_names;
    struct window windows[MAX_WINDOWS];
    int n_windows;
    int partition[AGGREGATE_MAX_COLUMNS], order[AGGREGATE_MAX_COLUMNS]; /* columns, of every window alike */
    bool desc[AGGREGATE_MAX_COLUMNS];
    int n_partition, n_order;
};

struct parser {
    VEC(struct token)
    tokens; /* without blanks; the last one is TOKEN_END */
    size_t at;
    bool bad;
};

static bool tokenize(struct parser *p, struct slice sql)
{
    const char *text = (const char *)sql.p;
    for (size_t at = 0;;) {
        enum token_kind kind;
        size_t len = token_next(text + at, sql.len - at, &kind);
        if (!token_is_blank(kind) && !vec_push(&p->tokens, (struct token){kind, slice_of(sql.p + at, len)}))
            return false;
        if (kind == TOKEN_END || kind == TOKEN_ILLEGAL || kind == TOKEN_QUOTED)
            return kind == TOKEN_END; /* names in quotes may mean what is rewritten */
        at += len;
    }
}

static const struct token *token(const struct parser *p)
{
    return &p->tokens.p[p->at];
}

static bool is_word(const struct token *t, const char *word)
{
    return t->kind == TOKEN_WORD && token_is((const char *)t->s.p, t->s.len, word);
}

static bool at_word(const struct parser *p, const char *word)
{
    return is_word(token(p), word);
}

static void advance(struct parser *p)
{
    p->at += token(p)->kind != TOKEN_END;
}

static bool accept_word(struct parser *p, const char *word)
{
    bool is = at_word(p, word);
    if (is)
        advance(p);
    return is;
}

static bool accept(struct parser *p, enum token_kind kind)
{
    bool is = token(p)->kind == kind;
    if (is)
        advance(p);
    return is;
}

static bool same_name(struct slice a, struct slice b)
{
    return a.len == b.len && sqlite3_strnicmp((const char *)a.p, (const char *)b.p, (int)a.len) == 0;
}

static int add_name(struct parser *p, struct found *f, struct slice name)
{
    for (int i = 0; i < f->n_names; i++)
        if (same_name(f->names[i], name))
            return i;
    if (f->n_names == AGGREGATE_MAX_COLUMNS) {
        p->bad = true;
        return 0;
    }
    f->names[f->n_names] = name;
    return f->n_names++;
}

/* [alias.]column */
static int parse_column(struct parser *p, struct found *f)
{
    struct slice name = token(p)->s;
    p->bad |= !accept(p, TOKEN_WORD);
    if (accept(p, TOKEN_DOT)) {
        if (!f->alias.len)
            f->alias = name; /* FROM comes later, and must say the same */
        p->bad |= !same_name(f->alias, name);
        name = token(p)->s;
        p->bad |= !accept(p, TOKEN_WORD);
    }
    return add_name(p, f, name);
}

/* Columns of PARTITION BY or ORDER BY: the same in every window. */
static void parse_columns(struct parser *p, struct found *f, int *columns, bool *desc, int *n)
{
    bool first = f->n_windows == 0;
    int k = 0;
    do {
        int column = parse_column(p, f);
        bool down = desc && accept_word(p, "desc");
        if (desc && !down)
            accept_word(p, "asc");
        if (k == AGGREGATE_MAX_COLUMNS / 2 ||
            (!first && (k >= *n || columns[k] != column || (desc && desc[k] != down))))
            p->bad = true;
        if (p->bad)
            return;
        columns[k] = column;
        if (desc)
            desc[k] = down;
        k++;
    } while (accept(p, TOKEN_COMMA));
    p->bad |= !first && k != *n;
    *n = k;
}

/* lead(column) OVER ([PARTITION BY …] ORDER BY …) */
static void parse_window(struct parser *p, struct found *f)
{
    struct window w = {.from = p->at, .lead = at_word(p, "lead")};
    p->bad |= (!w.lead && !at_word(p, "lag")) || f->n_windows == MAX_WINDOWS;
    advance(p);
    p->bad |= !accept(p, TOKEN_LP);
    w.value = parse_column(p, f);
    p->bad |= !accept(p, TOKEN_RP) || !accept_word(p, "over") || !accept(p, TOKEN_LP);
    bool parts = accept_word(p, "partition");
    if (parts) {
        p->bad |= !accept_word(p, "by");
        parse_columns(p, f, f->partition, NULL, &f->n_partition);
    }
    p->bad |= f->n_windows && parts != (f->n_partition > 0);
    p->bad |= !accept_word(p, "order") || !accept_word(p, "by");
    if (!p->bad)
        parse_columns(p, f, f->order, f->desc, &f->n_order);
    p->bad |= !accept(p, TOKEN_RP);
    w.to = p->at;
    if (!p->bad)
        f->windows[f->n_windows++] = w;
}

/* The list behind SELECT: expressions over columns, numbers and windows, without other functions. */
static void parse_list(struct parser *p, struct found *f)
{
    bool operand = false; /* the token before ended one */
    for (int depth = 0; !p->bad && !(depth == 0 && operand && at_word(p, "from"));) {
        const struct token *t = token(p);
        enum token_kind next = t->kind == TOKEN_END ? TOKEN_END : t[1].kind;
        if (operand && accept_word(p, "as")) {
            p->bad |= depth || !accept(p, TOKEN_WORD);
        } else if (t->kind == TOKEN_WORD && !operand) {
            if (next == TOKEN_LP)
                parse_window(p, f);
            else
                parse_column(p, f);
            operand = true;
        } else if (t->kind == TOKEN_NUMBER && !operand) {
            operand = true;
            advance(p);
        } else if (t->kind == TOKEN_OPERATOR || (t->kind == TOKEN_STAR && operand)) {
            operand = false;
            advance(p);
        } else if ((t->kind == TOKEN_LP && !operand) || (t->kind == TOKEN_RP && operand && depth > 0)) {
            depth += t->kind == TOKEN_LP ? 1 : -1;
            advance(p);
        } else if (t->kind == TOKEN_COMMA && operand && depth == 0) {
            operand = false;
            advance(p);
        } else {
            p->bad = true;
        }
    }
}

/* The select at the token behind SELECT. False when it is something else. */
static bool parse_select(struct parser *p, struct found *f)
{
    *f = (struct found){0};
    p->bad = false;
    parse_list(p, f);
    if (p->bad || !f->n_windows)
        return false;
    f->from = p->at;
    advance(p);
    f->table = token(p)->s;
    p->bad |= !accept(p, TOKEN_WORD);
    struct slice alias = f->table;
    if (accept_word(p, "as") || (token(p)->kind == TOKEN_WORD)) {
        alias = token(p)->s; /* a keyword here leads to what does not prepare, or is no end */
        p->bad |= !accept(p, TOKEN_WORD);
    }
    p->bad |= f->alias.len && !same_name(f->alias, alias);
    f->alias = alias;
    f->end = p->at;
    enum token_kind kind = token(p)->kind;
    return !p->bad && (kind == TOKEN_RP || kind == TOKEN_END || kind == TOKEN_SEMI);
}

/* May the name be one that a WITH defines, and not the table? Says so rather too often. */
static bool is_common_table(const struct parser *p, struct slice name)
{
    for (size_t i = 1; i + 1 < p->tokens.n; i++) {
        const struct token *t = &p->tokens.p[i];
        bool listed = t[-1].kind == TOKEN_COMMA || is_word(&t[-1], "with") || is_word(&t[-1], "recursive");
        if (listed && same_name(t->s, name) && (t[1].kind == TOKEN_LP || is_word(&t[1], "as")))
            return true;
    }
    return false;
}

/* ---- the other statement ---- */

static bool suits(const struct table *t, const struct found *f)
{
    for (int i = 0; i < f->n_partition; i++) /* equal doubles may differ in their words */
        if (f->at[f->partition[i]] >= 0 && t->columns[f->at[f->partition[i]]].type == COL_F64)
            return false;
    return t->n_rows >= AGGREGATE_MIN_ROWS && f->n_names + f->n_windows <= AGGREGATE_MAX_COLUMNS;
}

static void append_text(sqlite3_str *out, const uint8_t *from, const uint8_t *to)
{
    sqlite3_str_append(out, (const char *)from, (int)(to - from));
}

/* FROM (SELECT c0 AS "ts", …, c2 AS __intrinsic_w0 FROM __intrinsic_neighbours('…')) AS "alias" */
static void append_from(sqlite3_str *out, const struct found *f, const char *table)
{
    sqlite3_str_appendall(out, " FROM (SELECT ");
    for (int i = 0; i < f->n_names; i++)
        sqlite3_str_appendf(out, "c%d AS \"%.*w\",", i, (int)f->names[i].len, f->names[i].p);
    for (int i = 0; i < f->n_windows; i++)
        sqlite3_str_appendf(out, "%sc%d AS __intrinsic_w%d", i ? "," : "", f->n_names + i, i);
    sqlite3_str_appendf(out, " FROM __intrinsic_neighbours('%q", table);
    for (int i = 0; i < f->n_partition; i++)
        sqlite3_str_appendf(out, " p:%d", f->at[f->partition[i]]);
    for (int i = 0; i < f->n_order; i++)
        sqlite3_str_appendf(out, " o:%d%s", f->at[f->order[i]], f->desc[i] ? "-" : "");
    for (int i = 0; i < f->n_names; i++)
        sqlite3_str_appendf(out, " v:%d", f->at[i]);
    for (int i = 0; i < f->n_windows; i++)
        sqlite3_str_appendf(out, " %c:%d", f->windows[i].lead ? '>' : '<', f->at[f->windows[i].value]);
    sqlite3_str_appendf(out, "')) AS \"%.*w\" ", (int)f->alias.len, f->alias.p);
}

/* The text with the windows of a select replaced; sqlite3_free() it. */
static char *rewrite(const struct parser *p, const struct found *f, struct slice sql, const char *table)
{
    const struct token *t = p->tokens.p;
    const uint8_t *done = sql.p;
    sqlite3_str *out = sqlite3_str_new(NULL);
    for (int i = 0; i < f->n_windows; i++) {
        append_text(out, done, t[f->windows[i].from].s.p);
        sqlite3_str_appendf(out, "__intrinsic_w%d", i);
        const struct slice *last = &t[f->windows[i].to - 1].s;
        done = last->p + last->len;
    }
    append_text(out, done, t[f->from].s.p);
    append_from(out, f, table);
    const struct slice *last = &t[f->end - 1].s;
    append_text(out, last->p + last->len, sql.p + sql.len);
    return sqlite3_str_finish(out);
}

static bool same_columns(sqlite3_stmt *a, sqlite3_stmt *b)
{
    int n = sqlite3_column_count(a);
    bool same = n == sqlite3_column_count(b);
    for (int i = 0; same && i < n; i++)
        same = strcmp(sqlite3_column_name(a, i), sqlite3_column_name(b, i)) == 0;
    return same;
}

static sqlite3_stmt *prepare_select(struct engine *e, const struct parser *p, struct found *f, struct slice sql,
                                    sqlite3_stmt *original)
{
    const struct engine_known_table *known = aggregate_resolve(e, f->names, f->n_names, f->table, f->at);
    if (!known || !aggregate_is_plain(known->name) || engine_find_table(e, known->name) != known->table)
        return NULL;
    if (!known->table->final)
        table_finalize((struct table *)(uintptr_t)known->table);
    if (!suits(known->table, f))
        return NULL;
    sqlite3_stmt *stmt = NULL;
    char *text = rewrite(p, f, sql, known->name);
    if (!text || sqlite3_prepare_v2(e->db, text, -1, &stmt, NULL) != SQLITE_OK || !same_columns(original, stmt)) {
        sqlite3_finalize(stmt);
        stmt = NULL;
    }
    sqlite3_free(text);
    return stmt;
}

sqlite3_stmt *neighbours_prepare(struct engine *e, struct slice sql, sqlite3_stmt *original)
{
    struct parser p = {0};
    struct found f;
    sqlite3_stmt *stmt = NULL;
    /* what a CREATE keeps would hold the columns' numbers, and the table may be made anew */
    bool suitable = tokenize(&p, sql) && !at_word(&p, "create");
    for (size_t i = 0; suitable && !stmt && i < p.tokens.n; i++) {
        p.at = i;
        if (accept_word(&p, "select") && parse_select(&p, &f) && !is_common_table(&p, f.table))
            stmt = prepare_select(e, &p, &f, sql, original);
    }
    vec_free(&p.tokens);
    return stmt;
}
