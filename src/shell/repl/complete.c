/* What Tab offers: dot commands, keywords, tables, and the columns of tables that the statement names. */
#include "shell/names.h"
#include "shell/repl/repl.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
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

/* Names of functions and macros with what they take: "name(" and, behind CANDIDATE_NOTE, the arguments. */
static void offer_functions(struct repl *r, const char *word, size_t word_len, struct candidates *out)
{
    offer_rows(r,
               "SELECT DISTINCT name || '(' FROM (" SHELL_FUNCTION_NAMES ") WHERE name NOT GLOB '_*' AND name NOT IN "
               "(SELECT name FROM __intrinsic_stdlib_objects WHERE object_type GLOB '*FUNCTION')",
               word, word_len, out);
    offer_rows(r,
               "SELECT name || iif(object_type = 'MACRO', '!(', '(') || '" CANDIDATE_NOTE "' || coalesce((SELECT "
               "group_concat(value ->> 'name' || ' ' || (value ->> 'type'), ', ') FROM json_each(args)), '') || ')' "
               "FROM __intrinsic_stdlib_objects WHERE name NOT GLOB '_*' AND (object_type GLOB '*FUNCTION' OR "
               "object_type = 'MACRO')",
               word, word_len, out);
}

/* Files below the directory that the word names. */
static void offer_files(const char *word, size_t word_len, struct candidates *out)
{
    char pattern[512];
    glob_t files;
    snprintf(pattern, sizeof pattern, "%.*s*", (int)word_len, word);
    if (glob(pattern, GLOB_MARK | GLOB_TILDE, NULL, &files) != 0)
        return;
    for (size_t i = 0; i < files.gl_pathc; i++)
        offer(out, files.gl_pathv[i], word, word_len);
    globfree(&files);
}

static void offer_columns_of(struct repl *r, const char *before, size_t at, const char *after, size_t after_len,
                             const char *word, size_t word_len, struct candidates *out)
{
    size_t n = out->n;
    offer_columns(r, r->statement.p, r->statement.n, word, word_len, out);
    offer_columns(r, before, at, word, word_len, out);
    offer_columns(r, after, after_len, word, word_len, out);
    if (out->n == n && word_len > 0) /* no table is named yet: of any */
        offer_rows(r,
                   "SELECT DISTINCT column_name FROM _meridian_table_docs WHERE table_name NOT GLOB '_*' AND "
                   "column_name IS NOT NULL",
                   word, word_len, out);
}

/* What the argument of a dot command may be. */
static void offer_arguments(struct repl *r, const char *before, const char *word, size_t word_len,
                            struct candidates *out)
{
    static const char *const of_files[] = {".dump", ".once", ".output", ".read"};
    before += strspn(before, " \t");
    size_t n = strcspn(before, " \t");
    for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++) {
        if (strlen(of_files[i]) == n && memcmp(before, of_files[i], n) == 0) {
            offer_files(word, word_len, out);
            return;
        }
    }
    if (n == 5 && memcmp(before, ".mode", n) == 0) {
        for (int i = 0; i < OUTPUT_FORMATS; i++)
            offer(out, output_format_names[i], word, word_len);
        return;
    }
    offer_rows(r, "SELECT name FROM (" SHELL_TABLE_NAMES ")", word, word_len, out);
    if (n == 5 && memcmp(before, ".docs", n) == 0)
        offer_rows(r, "SELECT name FROM __intrinsic_stdlib_objects WHERE exposed", word, word_len, out);
}

/* Where a word of the kind begins that `also` (bytes beside letters and digits) may be part of. */
static size_t word_start(const char *before, size_t at, const char *also)
{
    while (at > 0 && (is_word_byte(before[at - 1]) || strchr(also, before[at - 1])))
        at--;
    return at;
}

/* Does the text end with "MODULE " before `at`? */
static bool names_module(const char *before, size_t at)
{
    while (at > 0 && isspace((unsigned char)before[at - 1]))
        at--;
    return at >= 6 && strncasecmp(before + at - 6, "module", 6) == 0;
}

void complete_word(struct repl *r, const char *before, const char *after, size_t after_len, size_t *word_at,
                   struct candidates *out)
{
    size_t len = strlen(before), at = word_start(before, len, ""), blanks = strspn(before, " \t");
    bool command = r->statement.n == 0 && before[blanks] == '.';
    bool in_command = command && strcspn(before + blanks, " \t") == len - blanks;
    size_t dotted = word_start(before, len, ".");
    if (in_command)
        at = blanks;
    else if (command)
        at = word_start(before, len, "-./~");
    else if (names_module(before, dotted))
        at = dotted;
    *word_at = at;
    const char *word = before + at, *name;
    size_t word_len = len - at;
    if (in_command) {
        for (size_t i = 0; (name = repl_meta_name(i)); i++)
            offer(out, name, word, word_len);
    } else if (command) {
        offer_arguments(r, before, word, word_len, out);
    } else if (names_module(before, dotted)) {
        offer_rows(r, SHELL_MODULE_NAMES, word, word_len, out);
    } else {
        offer_columns_of(r, before, at, after, after_len, word, word_len, out);
        if (at == 0 || before[at - 1] != '.') {
            offer_rows(r, "SELECT name FROM (" SHELL_TABLE_NAMES ")", word, word_len, out);
            if (word_len > 0)
                offer_functions(r, word, word_len, out);
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
