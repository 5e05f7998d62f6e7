/* Which stats of a trace are problems, where they are, and how to cure them. */
#ifndef MERIDIAN_SHELL_COMMANDS_CHECK_H
#define MERIDIAN_SHELL_COMMANDS_CHECK_H

#include "meridian/tp.h"
#include "shell/options.h"
#include "shell/text_out.h"

struct problem {
    struct tp_stat stat;
    const char *severity; /* as the check counts it: "data_loss", "error", "notice" or "info" */
    const char *index;    /* what stat.idx numbers: "cpu", "buffer", "pid"; "index" when nobody knows */
    const char *cure;
    bool allowed;
    char where[128]; /* "web1, cpu 3", "machine 2, pid 5", "host", "trace" */
};

/* What --fail-on and --allow ask for. */
struct check_rules {
    unsigned fail_on; /* set of 1 << severity: 0 info, 1 notice, 2 data_loss, 3 error */
    const struct text_list *allow;
};
int check_rules_parse(struct check_rules *r, const char *fail_on, const struct text_list *allow, struct error *err);

struct problems {
    struct problem *p;
    size_t n;
    size_t cap;
    size_t failing; /* those that are not allowed */
};
/* Collects the stats that fail by the rules, allowed ones included. -MRD_ENOMEM. */
int check_collect(struct tp *tp, const struct check_rules *rules, struct problems *out);

/* One trace's result: `failure` is the text of a load that failed, else NULL. */
struct check_result {
    const char *path;
    const char *failure;
    struct problems problems;
    char *diagnostics; /* what the recorder said could not be recorded, lines; NULL: nothing */
};

/* The rows of trace_diagnostics as lines "what; what to do"; NULL: none. For mem_free(). */
char *check_diagnostics(struct tp *tp);

/* The next of the lines; false when there is none. For mem_free(). */
bool check_next_diagnostic(const char **lines, char **line);

/* The report formats. */
struct check_format {
    const char *name;
    void (*print)(struct text_out *o, const struct check_result *results, size_t n);
};
const struct check_format *check_format_find(const char *name);

#endif
