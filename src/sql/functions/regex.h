/* Regular expressions as users write them (Perl's and ECMAScript's common part), matched in linear time.
 *
 * Alternatives, groups, (?:…), lazy and greedy * + ? {n,m}, classes, \d \w \s \b and their negations, ^ $, escapes. No
 * back references and no look-around. Bytes are the unit; a match is partial unless anchored. */
#ifndef MERIDIAN_SQL_FUNCTIONS_REGEX_H
#define MERIDIAN_SQL_FUNCTIONS_REGEX_H

#include "base/error.h"
#include "base/slice.h"
#include "base/stop.h"

struct regex;

enum { REGEX_MAX_GROUPS = 32 };

/* -MRD_EINVALID with the reason, -MRD_ENOMEM. */
int regex_compile(struct regex **out, struct slice pattern, bool ignore_case, struct error *err);
void regex_free(void *r); /* NULL is fine; void * so that SQLite may call it */

/* Searches heed `stop` from here on (NULL: none). */
void regex_set_stop(struct regex *r, stop_flag *stop);

/* Capturing groups, the whole match not counted. */
int regex_groups(const struct regex *r);

struct regex_match {
    struct {
        int64_t start, end; /* -1: took no part */
    } group[REGEX_MAX_GROUPS + 1];
};

/* The leftmost match at or behind `from`. 1, 0, or -MRD_ENOMEM / -MRD_ELIMIT (pattern and text too large together) /
 * -MRD_ECANCELLED (stop). */
int regex_search(struct regex *r, struct slice text, size_t from, struct regex_match *m);

#endif
