/* Macros: named token lists with parameters, and their expansion in a statement.
 *
 * `name!(a, b)` becomes the body of `name` with `$parameter` replaced by the argument's tokens. Arguments are expanded
 * before they are put in, the result again until no call is left. Bodies are kept as written. */
#ifndef MERIDIAN_SQL_DIALECT_MACRO_H
#define MERIDIAN_SQL_DIALECT_MACRO_H

#include "sql/frontend/text.h"

struct macro_param {
    const char *name;
    size_t len;
};

struct macro {
    struct sql_source *source; /* the body */
    char *name;
    struct macro_param *params; /* views of the names in one block */
    size_t n_params;
};

struct macro_table {
    struct macro **p;
    size_t n;
    size_t cap;
};

/* NULL when there is none. Names compare without case. */
struct macro *macro_find(const struct macro_table *t, const char *name, size_t len);

/* Makes a macro, or replaces the body of one of that name. False when out of memory. */
bool macro_define(struct macro_table *t, const char *name, const struct slice *params, size_t n_params,
                  struct slice body);
void macro_forget(struct macro_table *t, const char *name);
void macro_table_free(struct macro_table *t);

/* What went wrong, and where: a token of the text, with its frames. */
struct macro_problem {
    struct sql_token token;
    char text[256];
};

enum { MACRO_MAX_DEPTH = 200, MACRO_MAX_TOKENS = 4 * 1000 * 1000 };

/* Expands all calls in p[0, n) into *out. Frames and made-up texts are taken from `arena`. 0, -MRD_ESQL with *problem,
 * -MRD_ENOMEM. */
int macro_expand(const struct macro_table *t, struct arena *arena, const struct sql_token *p, size_t n,
                 struct sql_tokens *out, struct macro_problem *problem);

#endif
