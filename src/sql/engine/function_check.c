/* What SQL functions take, and whether a call gives it. */
#include "sql/engine/function_check.h"

#include <string.h>

static const struct {
    char letter;
    const char *wanted;
    unsigned types; /* bits 1 << SQLITE_… */
} kinds[] = {
    {'v', "anything", ~0u},
    {'i', "an integer", 1u << SQLITE_INTEGER},
    {'n', "a number", 1u << SQLITE_INTEGER | 1u << SQLITE_FLOAT},
    {'t', "a text", 1u << SQLITE_TEXT},
    {'c', "a text or NULL", 1u << SQLITE_TEXT | 1u << SQLITE_NULL},
    {'p', "a pointer that an aggregate made", 1u << SQLITE_NULL}, /* SQLite shows pointers as NULL */
};

static int kind_of(char letter)
{
    for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++)
        if (kinds[i].letter == letter)
            return i;
    return -1;
}

bool function_check_read(struct function_check *c, const char *takes, int n_args)
{
    *c = (struct function_check){.least = -1, .most = -1};
    if (!takes) {
        c->any = true;
        return n_args >= 0;
    }
    int n = 0;
    for (const char *p = takes; *p; p++) {
        if (*p == '?' && c->least < 0)
            c->least = n;
        else if (*p == '*' && c->most < 0)
            c->most = n;
        else if (kind_of(*p) >= 0 && n < (int)sizeof c->letters)
            c->letters[n++] = *p;
        else
            return false;
    }
    c->most = c->most < 0 ? n : c->most;
    c->least = c->least < 0 ? c->most : c->least;
    c->group = n - c->most;
    if (c->least > c->most || (takes[0] && takes[strlen(takes) - 1] == '*'))
        return false;
    return n_args < 0 || (n_args >= c->least && (c->group ? (n_args - c->most) % c->group == 0 : n_args <= c->most));
}

static void wrong_count(const struct function_check *c, const char *name, sqlite3_context *ctx, int argc)
{
    char *m = c->group ? sqlite3_mprintf("%s: expected %d arguments and any number of %s of %d, got %d", name, c->least,
                                         "groups", c->group, argc)
              : c->least == c->most
                  ? sqlite3_mprintf("%s: expected %d arguments, got %d", name, c->least, argc)
                  : sqlite3_mprintf("%s: expected %d to %d arguments, got %d", name, c->least, c->most, argc);
    sqlite3_result_error(ctx, m ? m : "out of memory", -1);
    sqlite3_free(m);
}

static void wrong_type(const char *name, sqlite3_context *ctx, int argument, const char *wanted)
{
    char *m = sqlite3_mprintf("%s: argument %d must be %s", name, argument, wanted);
    sqlite3_result_error(ctx, m ? m : "out of memory", -1);
    sqlite3_free(m);
}

bool function_check_call(const struct function_check *c, const char *name, sqlite3_context *ctx, int argc,
                         sqlite3_value **argv)
{
    int beyond = argc - c->most;
    if (argc < c->least || argc > FUNCTION_MAX_ARGUMENTS || (beyond > 0 && (!c->group || beyond % c->group))) {
        wrong_count(c, name, ctx, argc);
        return false;
    }
    for (int i = 0; i < argc; i++) {
        int at = i < c->most ? i : c->most + (i - c->most) % c->group;
        if (c->letters[at] == 'v')
            continue;
        int kind = kind_of(c->letters[at]);
        if (!(kinds[kind].types >> sqlite3_value_type(argv[i]) & 1)) {
            wrong_type(name, ctx, i + 1, kinds[kind].wanted);
            return false;
        }
    }
    return true;
}
