/* The ELF files below directories, by their build ids. */
#ifndef MERIDIAN_SYMBOLS_SYMBOL_INDEX_H
#define MERIDIAN_SYMBOLS_SYMBOL_INDEX_H

#include "base/error.h"
#include "base/slice.h"
#include "base/u64map.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum { SYMBOL_INDEX_MAX_FILES = 1 << 20 };

struct indexed_file {
    char *path;
    uint64_t key;
    uint32_t next; /* of the same key, + 1; 0: none */
};

struct symbol_index {
    struct u64map by_key; /* hash of a build id -> the first of `files` + 1 */
    VEC(struct indexed_file)
    files;
    uint64_t n_seen;    /* regular files */
    uint64_t n_damaged; /* which begin like ELF files and are none */
    bool full;          /* there are more files than SYMBOL_INDEX_MAX_FILES: the rest was not looked at */
};

/* Adds what is below a directory; links are followed, circles of them once. */
int symbol_index_add(struct symbol_index *x, const char *dir, struct error *err);

/* Files that may have this build id, which is to be compared: start with *at = 0; NULL at the end. */
const char *symbol_index_next(const struct symbol_index *x, struct slice build_id, uint32_t *at);

void symbol_index_free(struct symbol_index *x);

#endif
