/* What SQL functions take, and whether a call gives it.
 *
 * engine_function.takes is a letter for each argument:
 *
 *     v  anything            i  an integer       n  a number
 *     t  a text              c  a text or NULL   p  a pointer or NULL (tables, arrays, graphs, sets)
 *
 * Arguments behind '?' may be left out. The letters behind '*' come any number of times, the whole group each time:
 * "t?i" is a text, perhaps with an integer; "*tv" any number of names with values. A function of a row that fails it is
 * not called: the statement ends with "name: argument 2 must be a text". */
#ifndef MERIDIAN_SQL_ENGINE_FUNCTION_CHECK_H
#define MERIDIAN_SQL_ENGINE_FUNCTION_CHECK_H

#include <sqlite3.h>
#include <stdbool.h>

enum { FUNCTION_MAX_ARGUMENTS = 127 };

struct function_check {
    char letters[16]; /* those of single arguments, then those of the group */
    int least, most;  /* arguments in front of the group */
    int group;        /* letters that repeat; 0: none */
    bool any;         /* every letter is v and the count is SQLite's to look at */
};

/* False when `takes` is not written as above, or does not fit n_args. */
bool function_check_read(struct function_check *c, const char *takes, int n_args);

/* False: the error is the result of `ctx`. */
bool function_check_call(const struct function_check *c, const char *name, sqlite3_context *ctx, int argc,
                         sqlite3_value **argv);

#endif
