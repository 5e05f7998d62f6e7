/* Results as text: CSV exactly as scripts for Perfetto's shell expect it, aligned tables, JSON. */
#ifndef MERIDIAN_SHELL_OUTPUT_H
#define MERIDIAN_SHELL_OUTPUT_H

#include "meridian/tp.h"
#include "shell/text_out.h"

enum output_format { OUTPUT_CSV, OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_FORMATS };

extern const char *const output_format_names[OUTPUT_FORMATS]; /* "csv", "table", "json", "jsonl" */

/* The format of a name, or -1. */
int output_format_find(const char *name);

struct output {
    struct text_out *out;
    enum output_format format;
    unsigned width; /* of a table's columns; 0: as wide as the first rows need */
    /* After every 32 rows of a table: go on? NULL: always. */
    bool (*more)(void *ctx);
    void *more_ctx;
    unsigned results; /* shown so far: the next one is set off from the last */
};

/* Shows every row of `r`; a result without columns shows nothing, nor one whose only column is called
 * suppress_query_output. The rows shown, or the negative code of tp_step() (the rows before the failure are out). */
int64_t output_result(struct output *o, struct tp_result *r);

#endif
