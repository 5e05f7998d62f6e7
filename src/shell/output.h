/* Results as text: the CSV that scripts for Perfetto's shell expect, CSV as RFC 4180 has it, JSON, tables. */
#ifndef MERIDIAN_SHELL_OUTPUT_H
#define MERIDIAN_SHELL_OUTPUT_H

#include "meridian/tp.h"
#include "shell/text_out.h"

/* Each format once: FORMAT(NAME, "name", function). docs/tp_shell.md describes them. */
#define OUTPUT_FORMAT_ROWS(FORMAT)                                                                                     \
    FORMAT(CLASSIC, "classic", output_classic)                                                                         \
    FORMAT(CSV, "csv", output_csv)                                                                                     \
    FORMAT(TABLE, "table", output_table)                                                                               \
    FORMAT(BOX, "box", output_table)                                                                                   \
    FORMAT(MARKDOWN, "markdown", output_table)                                                                         \
    FORMAT(LINE, "line", output_line)                                                                                  \
    FORMAT(JSON, "json", output_json)                                                                                  \
    FORMAT(JSONL, "jsonl", output_json)

enum output_format {
#define FORMAT(NAME, ...) OUTPUT_##NAME,
    OUTPUT_FORMAT_ROWS(FORMAT)
#undef FORMAT
        OUTPUT_FORMATS
};

extern const char *const output_format_names[OUTPUT_FORMATS];

/* The format of a name, or -1. */
int output_format_find(const char *name);

struct output {
    struct text_out *out;
    enum output_format format;
    unsigned width;  /* of each column of a table; 0: as wide as the first rows need */
    unsigned screen; /* columns of the terminal, which a table then fits; 0: no limit */
    /* After every 32 rows of a table: go on? NULL: always. */
    bool (*more)(void *ctx);
    void *more_ctx;
    unsigned results; /* shown so far: the next one is set off from the last */
};

/* Shows every row of `r`; a result without columns shows nothing, nor one whose only column is called
 * suppress_query_output. The rows shown, or the negative code of tp_step() (the rows before the failure are out). */
int64_t output_result(struct output *o, struct tp_result *r);

/* A cell's text on one line, of whole characters and without controls, cut where `room` ends. The length without the
 * NUL. */
size_t output_cell(const struct tp_result *r, int column, char *to, size_t room);

#endif
