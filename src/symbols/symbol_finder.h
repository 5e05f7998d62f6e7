/* Finds the files that have the symbols of a program or library: by its build id, which must be the file's own. */
#ifndef MERIDIAN_SYMBOLS_SYMBOL_FINDER_H
#define MERIDIAN_SYMBOLS_SYMBOL_FINDER_H

#include "symbols/elf_image.h"

/* Where to look. Texts and lists are the caller's. */
struct symbol_sources {
    const char *const *paths; /* directories and files that the user has named */
    size_t n_paths;
    bool names_only;   /* look in them under the names and build ids of what is looked for, do not walk through them */
    bool this_machine; /* look at what the trace names, in /usr/lib/debug and in ~/.debug: at files that only root and
                          the user could have written */
    bool debuginfod;   /* ask the servers of DEBUGINFOD_URLS */
    const char *breakpad; /* a directory of Breakpad's files: then nothing else */
};

/* What came of one place. */
#define SYMBOL_TRIES(X)                                                                                                \
    X(FOUND, "used")                                                                                                   \
    X(POORER, "another file says more")                                                                                \
    X(MISSING, "file not found")                                                                                       \
    X(UNREADABLE, "cannot be read")                                                                                    \
    X(NOT_REGULAR, "not a regular file")                                                                               \
    X(UNTRUSTED, "another user could have written it: name its directory with --symbol-paths to use it")               \
    X(DAMAGED, "failed to parse")                                                                                      \
    X(MISMATCH, "build ID mismatch: another version of the file")                                                      \
    X(CRC, "checksum mismatch: another version than .gnu_debuglink names")                                             \
    X(NO_SYMBOLS, "has no symbols")                                                                                    \
    X(NO_BUILD_ID, "no matching build ID")                                                                             \
    X(NO_SERVER, "debuginfod: not there")

enum symbol_try {
#define X(name, text) SYMBOL_TRY_##name,
    SYMBOL_TRIES(X)
#undef X
};
const char *symbol_try_text(enum symbol_try t);

struct symbol_attempt {
    char *path;
    enum symbol_try what;
};

struct symbol_found {
    int fd, debug_fd, alt_fd; /* as of a symbol_job; fd -1: nothing was found */
    struct elf_image image;   /* of `fd` */
    enum elf_wealth wealth;   /* of what was found, taken together */
    char *path;               /* of the file that says most */
    VEC(struct symbol_attempt)
    attempts; /* in order, at most SYMBOL_MAX_ATTEMPTS */
};

enum { SYMBOL_MAX_ATTEMPTS = 256 };

struct symbol_finder;

/* `sources` must outlive it. */
int symbol_finder_open(struct symbol_finder **out, const struct symbol_sources *sources, struct error *err);

/* Looks for the file that a trace calls `path`, with this build id. `found` is to be freed in any case; what is not
 * there, or is not to be trusted, is no error. */
int symbol_finder_find(struct symbol_finder *f, struct slice path, struct slice build_id, struct symbol_found *found,
                       struct error *err);

/* The image of a kernel by its release; its build id may be empty, when the trace does not know it. */
int symbol_finder_find_kernel(struct symbol_finder *f, const char *release, struct slice build_id,
                              struct symbol_found *found, struct error *err);

void symbol_found_free(struct symbol_found *found);
void symbol_finder_close(struct symbol_finder *f);

#endif
