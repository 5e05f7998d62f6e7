/* Lines for the operator on standard error, one write each: "[14:03:07.125] traced: producer 3 connected". */
#ifndef MERIDIAN_BASE_LOG_H
#define MERIDIAN_BASE_LOG_H

#include <stdint.h>

/* Writes one line with the local time in front. The daemon's name is part of the text. Lines over 1 KiB are cut. Bytes
 * that are not printable are shown as '?': names come from other processes and must not forge lines. */
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A limit on how often something is logged: at most `burst` lines a second. A zeroed struct is ready. */
struct log_limit {
    int64_t second;
    unsigned used;
    unsigned dropped; /* lines kept back in the current second */
};

/* True when the line may be written; *dropped tells how many were kept back before it. */
int log_allowed(struct log_limit *l, unsigned burst, unsigned *dropped);

#endif
