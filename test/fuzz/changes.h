/* Does a text of SQL perhaps change what the next input finds? Opening an engine anew takes longer than most inputs:
 * targets that keep theirs do it only then. */
#ifndef MERIDIAN_TEST_FUZZ_CHANGES_H
#define MERIDIAN_TEST_FUZZ_CHANGES_H

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "fuzz.h"

static inline bool fuzz_changes(const uint8_t *data, size_t size)
{
    static const char *const words[] = {"creat", "drop",  "alter", "insert", "updat", "delet",  "repla",
                                        "begin", "savep", "inclu", "impor",  "memoi", "pragma", "attac"};
    for (size_t i = 0; i < size; i++)
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if ((data[i] | 32) == words[w][0] && size - i >= strlen(words[w]) &&
                strncasecmp((const char *)data + i, words[w], strlen(words[w])) == 0)
                return true;
    return false;
}

#endif
