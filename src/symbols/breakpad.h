/* Reads symbol files of Breakpad (MODULE, FILE, FUNC, PUBLIC and line records) for the addresses that are asked for. */
#ifndef MERIDIAN_SYMBOLS_BREAKPAD_H
#define MERIDIAN_SYMBOLS_BREAKPAD_H

#include "base/error.h"
#include "base/slice.h"

#include <stdint.h>

/* What is known of an address: views of the text. */
struct breakpad_line {
    struct slice function; /* empty: nothing is known */
    struct slice file;
    uint32_t line; /* 0: not known */
};

/* Looks up `n` addresses, which rise, each once, into out[0, n). One pass over the text, and memory for its names of
 * files alone. -MRD_EFORMAT with a line's number when it is not such a file. */
int breakpad_lookup(struct slice text, const uint64_t *addresses, size_t n, struct breakpad_line *out,
                    struct error *err);

#endif
