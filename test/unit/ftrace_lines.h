/* Decoded ftrace events and lines of the kernel's text trace, side by side. */
#ifndef MERIDIAN_TEST_FTRACE_LINES_H
#define MERIDIAN_TEST_FTRACE_LINES_H

#include "probes_fixture.h"
#include "wire/ftrace_events.h"

struct decoded_field {
    char name[64];
    bool is_text;
    uint64_t value;
    struct slice text;
};

struct decoded_event {
    uint64_t ts;
    uint32_t cpu;
    uint32_t pid;
    char name[96];
    size_t n_fields;
    struct decoded_field fields[40];
};

typedef VEC(struct decoded_event) decoded_list;

/* Decodes all events of all bundles, in the order in which they stand (compact lists are expanded, with the fields that
 * they hold). */
void decode_packets(const struct memory_sink *m, decoded_list *out);

/* What was compared, and the first difference ("" when there is none). */
struct comparison {
    unsigned types; /* different event names */
    size_t lines, fields;
    char difference[600];
};

/* Compares with the text of `trace` in "fields" format, cpu by cpu, event for event; cuts `text` up. Returns whether
 * they agree. */
bool compare_with_text(decoded_list *events, char *text, struct comparison *c);

#endif
