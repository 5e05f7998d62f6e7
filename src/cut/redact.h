/* Replaces strings of a recording by pseudonyms, in all places where they occur.
 *
 *     struct redactor *r;
 *     int rc = redactor_open(&r, rules, err);
 *     for each packet: redactor_gather(r, packet);
 *     rc = rc ? rc : redactor_ready(r, err);
 *     for each packet: redactor_write(r, packet, &out);
 *     redactor_close(r);
 *
 * Rules are lines "KIND PATTERN" (docs/cutting.md). What a rule matches as a whole becomes a secret; a secret is
 * replaced in every string, also within longer ones. Fields that the schema does not know keep their lengths: a secret
 * in them is overwritten. The same secret has the same pseudonym everywhere, and in other files with the same key. */
#ifndef MERIDIAN_CUT_REDACT_H
#define MERIDIAN_CUT_REDACT_H

#include "base/error.h"
#include "wire/pb_writer.h"

struct redactor;

/* `rules` is text, copied. On failure *r is NULL; messages begin with the line. */
int redactor_open(struct redactor **r, const char *rules, struct error *err);
void redactor_close(struct redactor *r);

/* Notes which strings of a TracePacket the rules match. */
void redactor_gather(struct redactor *r, struct slice packet);

/* No more packets to gather. */
int redactor_ready(struct redactor *r, struct error *err);

/* Appends the packet's fields without secrets; nothing damaged is written. Out of memory latches out->failed. */
void redactor_write(struct redactor *r, struct slice packet, struct pb_writer *out);

struct redact_counts {
    uint64_t strings;      /* secrets */
    uint64_t replaced;     /* places */
    uint64_t unmatched;    /* rules that replaced nothing */
    uint32_t unmatched_at; /* line of the first of them */
};
struct redact_counts redactor_counts(const struct redactor *r);

#endif
