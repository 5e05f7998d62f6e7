/* What Tab offers: dot commands, keywords, tables, and the columns of tables that the statement names. */
#include "shell/repl/repl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const keywords[] = {
    "AND",   "AS",     "ASC",    "BETWEEN", "BY",        "CASE",     "CREATE",  "CROSS",  "DESC",  "DISTINCT", "DROP",
    "ELSE",  "END",    "EXISTS", "FROM",    "FUNCTION",  "GLOB",     "GROUP",   "HAVING", "IN",    "INCLUDE",  "INDEX",
    "INNER", "IS",     "JOIN",   "LEFT",    "LIKE",      "LIMIT",    "MACRO",   "MODULE", "NOT",   "NULL",     "OFFSET",
    "ON",    "OR",     "ORDER",  "OVER",    "PARTITION", "PERFETTO", "RETURNS", "SELECT", "TABLE", "THEN",     "UNION",
    "USING", "VALUES", "VIEW",   "WHEN",    "WHERE",     "WINDOW",   "WITH",
};

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void offer(struct candidates *out, const char *name, const char *word, size_t word_len)
{
    if (strncasecmp(name, word, word_len) != 0)
        return;
    char *copy = mem_strdup(name);
    if (!copy || !vec_push(out, copy))
        mem_free(copy);
}

/* Offers the first column of a query's rows. */
static void offer_rows(struct repl *r, const char *sql, const char *word, size_t word_len, struct candidates *out)
{
    struct tp_result *result = NULL;
    if (tp_query(r->sh->tp, sql, &result) != 0)
        return;
    while (tp_step(result) == 1) {
        const char *name = tp_text(result, 0, NULL);
        if (name)
            offer(out, name, word, word_len);
    }
    tp_result_close(result);
}

/* Columns of every table or view whose name stands in `text`. */
static void offer_columns(struct repl *r, const char *text, size_t text_len, const char *word, size_t word_len,
                          struct candidates *out)
{
    for (size_t i = 0; i < text_len;) {
        size_t n = 0;
        while (i + n < text_len && is_word_byte(text[i + n]))
            n++;
        if (n > 1 && n < 128 && !isdigit((unsigned char)text[i])) {
            char sql[256];
            snprintf(sql, sizeof sql, "SELECT name FROM pragma_table_info('%.*s')", (int)n, text + i);
            offer_rows(r, sql, word, word_len, out);
        }
        i += n ? n : 1;
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void drop_duplicates(struct candidates *c)
{
    if (c->n == 0)
        return;
    qsort(c->p, c->n, sizeof *c->p, by_text);
    size_t kept = 1;
    for (size_t i = 1; i < c->n; i++) {
        if (strcmp(c->p[i], c->p[kept - 1]) == 0)
            mem_free(c->p[i]);
        else
            c->p[kept++] = c->p[i];
    }
    c->n = kept;
}

void complete_word(struct repl *r, const char *before, size_t *word_at, struct candidates *out)
{
    size_t len = strlen(before), at = len;
    while (at > 0 && is_word_byte(before[at - 1]))
        at--;
    if (r->statement.n == 0 && at > 0 && before[at - 1] == '.' && strspn(before, " \t") == at - 1)
        at--; /* a dot command */
    else if (r->statement.n == 0 && len > 0 && before[strspn(before, " \t")] == '.')
        while (at > 0 && (is_word_byte(before[at - 1]) || before[at - 1] == '-' || before[at - 1] == '.'))
            at--;
    *word_at = at;
    const char *word = before + at;
    size_t word_len = len - at;
    if (word[0] == '.') {
        const char *name;
        for (size_t i = 0; (name = repl_meta_name(i)); i++)
            offer(out, name, word, word_len);
    } else {
        bool qualified = at > 0 && before[at - 1] == '.';
        offer_columns(r, r->statement.p, r->statement.n, word, word_len, out);
        offer_columns(r, before, at, word, word_len, out);
        if (!qualified) {
            offer_rows(r, "SELECT name FROM (" REPL_TABLE_NAMES ")", word, word_len, out);
            for (size_t i = 0; i < sizeof keywords / sizeof *keywords && word_len > 0; i++)
                offer(out, keywords[i], word, word_len);
        }
    }
    drop_duplicates(out);
}

void candidates_free(struct candidates *c)
{
    for (size_t i = 0; i < c->n; i++)
        mem_free(c->p[i]);
    vec_free(c);
}
