/* Checks recordings against rules, and keeps what they were as a baseline. */
#ifndef MERIDIAN_COMPARE_GATE_H
#define MERIDIAN_COMPARE_GATE_H

#include "compare/gate_rules.h"
#include "meridian/tp.h"

/* What the left sides of rules were, of each trace that was recorded. */
struct gate_baseline {
    struct arena arena;
    struct gate_values {
        const char *rule; /* its left side */
        VEC(double) values;
    } * p;
    size_t n, cap;
};

/* Reads what gate_baseline_print() wrote. Free in any case. */
int gate_baseline_parse(struct gate_baseline *b, struct slice json, struct error *err);
int gate_baseline_add(struct gate_baseline *b, const char *rule, double value);
void gate_baseline_free(struct gate_baseline *b);

/* Writes it as JSON; `put` as of json_writer. */
int gate_baseline_print(const struct gate_baseline *b, int (*put)(void *ctx, const void *bytes, size_t len), void *ctx);

/* The median of the recorded values; false: the rule has none. */
bool gate_baseline_of(const struct gate_baseline *b, const char *rule, double *out);

/* What a rule needs beside its rows. */
struct gate_trace {
    struct tp *tp;
    double losses;
    const struct gate_baseline *baseline; /* NULL: none */
};

/* The value of a node. The error tells what of the trace is missing, or what SQL says of the condition. */
int gate_value(const struct gate_rules *r, const struct gate_rule *rule, uint32_t node, const struct gate_trace *t,
               double *out, struct error *err);

#endif
