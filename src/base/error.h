/* Error codes and the error value that functions hand back to their caller.
 *
 * A function that can fail returns 0 or a negative code of the list below; a function that can explain itself also
 * takes a `struct error *` owned by the caller (NULL is allowed) and writes the text. Each layer on the way up may put
 * its own place in front: "trace.pftrace: packet at byte 81920: unexpected wire type". Bad data in a trace is not an
 * error of the run: it is a row in `stats`, and the import goes on. */
#ifndef MERIDIAN_BASE_ERROR_H
#define MERIDIAN_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#define MRD_ERRORS(X)                                                                                                  \
    X(NOMEM, "out of memory")                                                                                          \
    X(IO, "input/output error")                                                                                        \
    X(FORMAT, "malformed data")                                                                                        \
    X(INVALID, "invalid argument")                                                                                     \
    X(UNSUPPORTED, "not supported")                                                                                    \
    X(NOTFOUND, "not found")                                                                                           \
    X(EXISTS, "already exists")                                                                                        \
    X(DENIED, "permission denied")                                                                                     \
    X(LIMIT, "limit exceeded")                                                                                         \
    X(CLOSED, "connection closed")                                                                                     \
    X(TIMEOUT, "timed out")                                                                                            \
    X(CANCELLED, "interrupted")                                                                                        \
    X(SQL, "SQL error")

enum mrd_error_code {
    MRD_OK,
#define X(name, text) MRD_E##name,
    MRD_ERRORS(X)
#undef X
        MRD_ERROR_COUNT
};

struct error {
    int code;       /* 0 or one of -MRD_E… */
    char text[512]; /* what went wrong and where; always terminated, cut at a UTF-8 boundary when too long */
};

/* Fills `e` (may be NULL) with `code` (-MRD_E…) and the formatted text; returns `code`, so that a caller can write
 * `return error_set(e, -MRD_EIO, ...)`. */
int error_set(struct error *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int error_vset(struct error *e, int code, const char *fmt, va_list ap);

/* As error_set(), with ": <strerror(errno_value)>" behind the text. ENOMEM and EACCES/EPERM/ENOENT choose their own
 * code. */
int error_set_errno(struct error *e, int errno_value, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "<formatted>: " in front of the text that is there; returns the code that is there. */
int error_prefix(struct error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A constant text for a code, "unknown error" for anything else. */
const char *error_code_text(int code);

#endif
