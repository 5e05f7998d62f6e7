/* The text of queries: pieces put together within a limit, names and strings quoted, expressions looked over. */
#include "base/sql_token.h"
#include "summary/query/generator.h"

#include <stdio.h>
#include <string.h>

static bool make_room(struct query_text *t, size_t len)
{
    struct generator *g = t->g;
    if (t->failed)
        return false;
    if (len > STRUCTURED_QUERY_MAX_BYTES - g->bytes)
        t->failed =
            query_fail(g, -MRD_ELIMIT, NULL, "the SQL would be longer than %d bytes", STRUCTURED_QUERY_MAX_BYTES);
    else if (t->n + len >= t->cap && !vec_reserve_((void **)&t->p, &t->cap, 1, t->n + len + 1))
        t->failed = query_fail(g, -MRD_ENOMEM, NULL, "out of memory");
    return !t->failed;
}

static void put_bytes(struct query_text *t, const char *p, size_t len)
{
    if (!make_room(t, len))
        return;
    memcpy(t->p + t->n, p, len);
    t->n += len;
    t->p[t->n] = 0;
    t->g->bytes += len;
}

void put_sql(struct query_text *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n > 0 && make_room(t, (size_t)n)) {
        vsnprintf(t->p + t->n, (size_t)n + 1, fmt, again);
        t->n += (size_t)n;
        t->g->bytes += (size_t)n;
    }
    va_end(again);
}

static void put_quoted(struct query_text *t, const char *text, char quote)
{
    put_bytes(t, &quote, 1);
    for (const char *end; (end = strchr(text, quote)); text = end + 1) {
        put_bytes(t, text, (size_t)(end - text) + 1);
        put_bytes(t, &quote, 1);
    }
    put_bytes(t, text, strlen(text));
    put_bytes(t, &quote, 1);
}

/* In backticks: SQLite takes a name in double quotes for a text where no column has that name. */
void put_name(struct query_text *t, const char *name)
{
    put_quoted(t, name, '`');
}

void put_string(struct query_text *t, const char *text)
{
    put_quoted(t, text, '\'');
}

void put_unit(struct query_text *t, uint32_t unit)
{
    const struct query_unit *u = &t->g->units.p[unit];
    t->uses += u->uses;
    if (t->uses > STRUCTURED_QUERY_MAX_USES && !t->failed)
        t->failed = query_fail(t->g, -MRD_ELIMIT, NULL, "the queries behind it are used more than %d times in all",
                               STRUCTURED_QUERY_MAX_USES);
    put_sql(t, "%s", u->name);
}

void query_text_free(struct query_text *t)
{
    mem_free(t->p);
    t->p = NULL;
}

/* ---- texts of the spec ---- */

bool is_plain_name(const char *text)
{
    enum token_kind kind;
    size_t len = strlen(text);
    return len && token_next(text, len, &kind) == len && kind == TOKEN_WORD;
}

int check_name(struct generator *g, const char *field, const char *name)
{
    if (!name || !*name)
        return query_fail(g, -MRD_EINVALID, field, "is missing");
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return query_fail(g, -MRD_EINVALID, field, "a control character in a name");
    return 0;
}

/* The unit of a variable's name, -1 when no dependency has it. */
static int64_t find_alias(const struct query_aliases *aliases, const char *variable, size_t len)
{
    strid id = aliases && len > 1 ? strpool_find(&aliases->names, variable + 1, len - 1) : 0;
    return id ? (int64_t)aliases->units.p[id - 1] : -1;
}

int put_whole(struct query_text *t, const char *field, struct slice sql, const struct query_aliases *aliases)
{
    const char *text = (const char *)sql.p;
    size_t at = 0, words = 0, open = 0;
    while (at < sql.len) {
        enum token_kind kind;
        size_t n = token_next(text + at, sql.len - at, &kind);
        int64_t unit = kind == TOKEN_VARIABLE ? find_alias(aliases, text + at, n) : -1;
        if (kind == TOKEN_ILLEGAL)
            return query_fail(t->g, -MRD_EINVALID, field, "at byte %zu: invalid SQL: %.20s", at + 1, text + at);
        if (kind == TOKEN_SEMI)
            return query_fail(t->g, -MRD_EINVALID, field, "at byte %zu: ';' in an expression", at + 1);
        if (kind == TOKEN_RP && !open)
            return query_fail(t->g, -MRD_EINVALID, field, "at byte %zu: ')' without '('", at + 1);
        open += kind == TOKEN_LP;
        open -= kind == TOKEN_RP;
        words += !token_is_blank(kind);
        if (kind == TOKEN_COMMENT) /* one could hide what follows */
            put_bytes(t, " ", 1);
        else if (unit >= 0)
            put_unit(t, (uint32_t)unit);
        else
            put_bytes(t, text + at, n);
        at += n;
    }
    if (open)
        return query_fail(t->g, -MRD_EINVALID, field, "'(' without ')'");
    return words ? 0 : query_fail(t->g, -MRD_EINVALID, field, "is empty");
}

int put_expression(struct query_text *t, const char *field, const char *sql)
{
    return put_whole(t, field, slice_str(sql), NULL);
}

/* Words that are values, not names. */
static bool is_value(const char *word)
{
    static const char *const values[] = {"null", "true", "false", "current_date", "current_time", "current_timestamp"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (token_is(word, strlen(word), values[i]))
            return true;
    return false;
}

static int put_checked(struct query_text *t, const char *field, const char *name, bool brackets)
{
    int rc = name && *name ? 0 : query_fail(t->g, -MRD_EINVALID, field, "is missing");
    if (rc == 0 && is_plain_name(name) && !is_value(name)) {
        put_name(t, name);
        return 0;
    }
    put_sql(t, "%s", brackets ? "(" : "");
    rc = rc < 0 ? rc : put_expression(t, field, name);
    put_sql(t, "%s", brackets ? ")" : "");
    return rc;
}

int put_column(struct query_text *t, const char *field, const char *name)
{
    return put_checked(t, field, name, false);
}

int put_operand(struct query_text *t, const char *field, const char *name)
{
    return put_checked(t, field, name, true);
}
