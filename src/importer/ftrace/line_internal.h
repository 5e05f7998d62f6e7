/* What the files about events as text share: the words of ARGS. */
#ifndef MERIDIAN_IMPORTER_FTRACE_LINE_INTERNAL_H
#define MERIDIAN_IMPORTER_FTRACE_LINE_INTERNAL_H

#include "importer/ftrace/ftrace_internal.h"
#include "importer/ftrace/ftrace_line.h"

struct line_word {
    struct slice key;   /* empty: a word without '=' */
    struct slice value; /* up to the next space */
    struct slice whole; /* with the words that follow, up to the next key: names may hold spaces */
};

struct line_args {
    struct slice text;
    uint32_t utid; /* the thread of the line */
    uint32_t n;
    struct line_word words[32];
};

void line_args_split(struct line_args *a, struct slice text);

/* The first word of a key; NULL when there is none. */
const struct line_word *line_word(const struct line_args *a, const char *key);
/* Whole numbers of 32 and 64 bits, any number, hexadecimal; false when they are missing or none. */
bool line_i32(const struct line_args *a, const char *key, int32_t *value);
bool line_i64(const struct line_args *a, const char *key, int64_t *value);
bool line_real(const struct line_args *a, const char *key, double *value);
bool line_hex(const struct line_args *a, const char *key, uint32_t *value);
struct slice line_text(const struct line_args *a, const char *key);

/* What a kind of events does; `e->payload` is empty. */
typedef void (*line_fn_event)(const struct ftrace_event *e, const struct line_args *a);

struct line_handler {
    const char *name;
    line_fn_event fn;
};
extern const struct line_handler ftrace_line_handlers[]; /* ended by name NULL */

/* The kernel's letters for a state; "SDT" for what is none. */
strid line_task_state(const struct ftrace_event *e, struct slice text);

#endif
