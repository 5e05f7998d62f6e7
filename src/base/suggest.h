/* "did you mean": the known word nearest to one that is not known. */
#ifndef MERIDIAN_BASE_SUGGEST_H
#define MERIDIAN_BASE_SUGGEST_H

#include "base/error.h"

#include <stddef.h>

struct suggestion {
    const char *word; /* as typed */
    size_t len;
    const char *best; /* NULL: nothing is near */
    unsigned distance;
};

struct suggestion suggest(const char *word, size_t len);
void suggest_among(struct suggestion *s, const char *candidate);

/* " (did you mean 'query'?)", or nothing, into `room` bytes of `text`; `prefix` stands in front of the word ("--").
 * Returns text. */
const char *suggest_text(const struct suggestion *s, const char *prefix, char *text, size_t room);

/* -MRD_EINVALID: "<what>: '<word>' is none of <names>", and which of them may be meant. */
int suggest_refuse(struct error *err, const char *what, const char *word, const char *const *names, size_t n);

#endif
