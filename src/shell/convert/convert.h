/* The formats of `tp_shell convert`. */
#ifndef MERIDIAN_SHELL_CONVERT_CONVERT_H
#define MERIDIAN_SHELL_CONVERT_CONVERT_H

#include "shell/convert/out_file.h"
#include "shell/shell.h"

/* Each writes what sh->tp has loaded; results as those of a command, text included. */
int convert_json(struct shell *sh, struct out_file *out, struct error *err);
int convert_systrace(struct shell *sh, struct out_file *out, struct error *err);
int convert_ctrace(struct shell *sh, struct out_file *out, struct error *err);

/* Call stacks as lines "a;b;c COUNT", and as a flame graph in SVG. */
int convert_collapsed(struct shell *sh, struct out_file *out, struct error *err);
int convert_collapsed_off_cpu(struct shell *sh, struct out_file *out, struct error *err);
int convert_flamegraph_off_cpu(struct shell *sh, struct out_file *out, struct error *err);
int convert_collapsed_wakers(struct shell *sh, struct out_file *out, struct error *err);
int convert_flamegraph_wakers(struct shell *sh, struct out_file *out, struct error *err);
int convert_flamegraph(struct shell *sh, struct out_file *out, struct error *err);

/* Slices as spans of OpenTelemetry: lines of JSON, or one document when the file's name ends in .json. */
int convert_otlp(struct shell *sh, struct out_file *out, struct error *err);

int convert_firefox(struct shell *sh, struct out_file *out, struct error *err);

/* Writes files of its own into --output-dir and prints their names; `out` is NULL. */
int convert_profile(struct shell *sh, struct out_file *out, struct error *err);

/* Calls `each` for every row of a query, until it does not return 0. */
int convert_rows(struct shell *sh, const char *sql, int (*each)(void *ctx, struct tp_result *r), void *ctx,
                 struct error *err);

#endif
