/* The rules of a gate: a text with a rule a line.
 *
 *     p99(sched_latency where process = 'nginx') <= baseline * 1.1
 *     count(slice where name glob 'error*') = 0
 *     loss = 0
 *     clock_error <= 100us
 *
 *     rule    = sum ("<=" | "<" | ">=" | ">" | "=" | "!=") sum
 *     sum     = product {("+" | "-") product}
 *     product = factor {("*" | "/") factor}
 *     factor  = number [unit] | "baseline" | "loss" | "clock_error" | function "(" source ["where" SQL] ")"
 *             | "(" sum ")" | "-" factor
 *
 * Times are nanoseconds; units are ns, us, ms, s and %. "#" begins a comment. Within parentheses a rule may go over
 * several lines. `baseline` is what the left side was when the baseline was recorded. */
#ifndef MERIDIAN_COMPARE_GATE_RULES_H
#define MERIDIAN_COMPARE_GATE_RULES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

/* What rows a function is of: SQL with a column `value`, and columns to write conditions with. */
struct gate_source {
    const char *name;
    const char *sql;
};
extern const struct gate_source gate_sources[];
extern const size_t n_gate_sources;

enum gate_kind { GATE_NUMBER, GATE_BASELINE, GATE_LOSS, GATE_CLOCK_ERROR, GATE_ROWS, GATE_CALCULATED };
enum gate_function { GATE_COUNT, GATE_SUM, GATE_MIN, GATE_MAX, GATE_MEAN, GATE_QUANTILE };
enum gate_compare { GATE_LE, GATE_LT, GATE_GE, GATE_GT, GATE_EQ, GATE_NE };

struct gate_node {
    enum gate_kind kind;
    double number;
    char op; /* of GATE_CALCULATED: one of + - * / */
    uint32_t left, right;
    enum gate_function function; /* of GATE_ROWS, as all below */
    double quantile;             /* 0 to 1 */
    const struct gate_source *source;
    const char *where; /* a condition; NULL: none */
};

struct gate_rule {
    const char *text, *left_text; /* with single blanks */
    unsigned line;
    uint32_t left, right; /* nodes */
    enum gate_compare compare;
    bool wants_baseline;
};

struct gate_rules {
    struct arena arena;
    VEC(struct gate_node) nodes;
    VEC(struct gate_rule) rules;
};

/* Reads a text. Errors name the line and say what was expected. Free in any case. */
int gate_rules_parse(struct gate_rules *out, struct slice text, struct error *err);
void gate_rules_free(struct gate_rules *r);

/* Does the comparison hold? */
bool gate_holds(enum gate_compare c, double left, double right);

#endif
