/* The gate's report as text, JSON, JUnit XML and GitHub workflow commands. */
#ifndef MERIDIAN_SHELL_COMPARE_GATE_OUTPUT_H
#define MERIDIAN_SHELL_COMPARE_GATE_OUTPUT_H

#include "compare/gate_rules.h"
#include "shell/text_out.h"

enum gate_status { GATE_PASSED, GATE_FAILED, GATE_UNCHECKED };

/* What came of a rule, or of a trace that could not be loaded (rule NULL). */
struct gate_result {
    const char *trace;
    const struct gate_rule *rule;
    enum gate_status status;
    double left, right;
    char *why; /* of GATE_UNCHECKED */
};

struct gate_report {
    const char *rules_path;
    const struct gate_result *p;
    size_t n;
};

struct gate_format {
    const char *name;
    void (*print)(struct text_out *o, const struct gate_report *r);
};
enum { GATE_FORMATS = 4 };
extern const struct gate_format gate_formats[GATE_FORMATS];

#endif
