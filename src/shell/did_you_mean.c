/* What was meant by a name that does not exist. */
#include "shell/did_you_mean.h"

#include "base/alloc.h"
#include "base/slice.h"
#include "base/suggest.h"
#include "shell/names.h"
#include "shell/text_width.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What an error says before the name, and the names of that kind. */
static const struct {
    const char *says, *names;
    bool of_tables;  /* columns: of the tables that the statement names */
    bool in_modules; /* modules of the library define some, too */
} kinds[] = {
    {"no such table: ", "SELECT name FROM (" SHELL_TABLE_NAMES ") WHERE name NOT GLOB '_*'", false, true},
    {"no such column: ", NULL, true, false},
    {"no such function: ", SHELL_FUNCTION_NAMES, false, true},
    {"unknown module '", SHELL_MODULE_NAMES, false, false},
    {"INCLUDE: Package '", "SELECT DISTINCT package FROM __intrinsic_stdlib_objects()", false, false},
};

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Names that come and go while rows are read are kept: the best so far. */
static void among_rows(struct tp *tp, const char *sql, struct suggestion *s, char *best, size_t room)
{
    struct tp_result *r = NULL;
    if (tp_query(tp, sql, &r) != 0)
        return;
    while (tp_step(r) == 1) {
        const char *name = tp_text(r, 0, NULL), *before = s->best;
        if (!name)
            continue;
        suggest_among(s, name);
        if (s->best == before)
            continue;
        snprintf(best, room, "%s", name);
        s->best = best;
    }
    tp_result_close(r);
}

/* Columns of every table that is named in a text; of_table: where the best is from. */
static void among_columns(struct tp *tp, const char *text, struct suggestion *s, char *best, size_t room,
                          struct slice *of_table)
{
    for (const char *p = text; *p;) {
        size_t n = 0;
        while (is_name(p[n]))
            n++;
        if (n > 1 && n < 100 && !isdigit((unsigned char)*p)) {
            char sql[200];
            unsigned before = s->best ? s->distance : UINT_MAX;
            snprintf(sql, sizeof sql, "SELECT name FROM pragma_table_info('%.*s')", (int)n, p);
            among_rows(tp, sql, s, best, room);
            if (s->best && s->distance < before)
                *of_table = slice_of(p, n);
        }
        p += n ? n : 1;
    }
}

/* The module of the library that has what is not there; false: none. */
static bool in_module(struct tp *tp, const char *word, size_t len, char *text, size_t room)
{
    char sql[300];
    struct tp_result *r = NULL;
    bool found = false;
    size_t n = 0;
    while (n < len && is_name(word[n]))
        n++;
    if (!n || n < len || len > 100)
        return false;
    snprintf(sql, sizeof sql,
             "SELECT module FROM __intrinsic_stdlib_objects() WHERE name = '%.*s' COLLATE NOCASE AND exposed AND "
             "object_type != 'MODULE'",
             (int)len, word);
    if (tp_query(tp, sql, &r) != 0)
        return false;
    if (tp_step(r) == 1) {
        snprintf(text, room, "it is in a module: INCLUDE PERFETTO MODULE %s;", tp_text(r, 0, NULL));
        found = true;
    }
    tp_result_close(r);
    return found;
}

const char *did_you_mean(struct tp *tp, const char *error, char *text, size_t room)
{
    char best[128], said[160];
    text[0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *at = strstr(error, kinds[i].says);
        if (!at)
            continue;
        const char *word = at + strlen(kinds[i].says);
        size_t len = strcspn(word, "'\n");
        for (const char *dot; kinds[i].of_tables && (dot = memchr(word, '.', len)) != NULL;) { /* t.name */
            len -= (size_t)(dot + 1 - word);
            word = dot + 1;
        }
        if (kinds[i].in_modules && in_module(tp, word, len, text, room))
            return text;
        struct suggestion s = suggest(word, len);
        struct slice table = slice_of("", 0);
        if (kinds[i].of_tables)
            among_columns(tp, error, &s, best, sizeof best, &table);
        else
            among_rows(tp, kinds[i].names, &s, best, sizeof best);
        suggest_text(&s, "", said, sizeof said);
        if (s.best && s.distance == 0 && kinds[i].of_tables)
            snprintf(text, room, "'%s' is a column of %.*s", best, (int)table.len, (const char *)table.p);
        else if (*said) /* " (did you mean 'x'?)": a line of its own here */
            snprintf(text, room, "%.*s", (int)strlen(said) - 3, said + 2);
        return text;
    }
    return text;
}

void shell_tell_error(struct tp *tp)
{
    char *error = mem_strdup(tp_error(tp)), text[160];
    bool colours = text_colours(STDERR_FILENO);
    if (!error) {
        fprintf(stderr, "%s\n", tp_error(tp));
        return;
    }
    const char *last = strrchr(error, '\n'); /* what is wrong; before it, where */
    last = last ? last + 1 : error;
    fprintf(stderr, "%.*s%s%s%s\n", (int)(last - error), error, colours ? "\033[1;31m" : "", last,
            colours ? "\033[0m" : "");
    if (*did_you_mean(tp, error, text, sizeof text))
        fprintf(stderr, "%s\n", text);
    mem_free(error);
}
