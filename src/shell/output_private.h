/* The formats; for output*.c only. Each shows every row, and returns as output_result(). */
#ifndef MERIDIAN_SHELL_OUTPUT_PRIVATE_H
#define MERIDIAN_SHELL_OUTPUT_PRIVATE_H

#include "shell/output.h"

int64_t output_classic(struct output *o, struct tp_result *r);
int64_t output_csv(struct output *o, struct tp_result *r);
int64_t output_json(struct output *o, struct tp_result *r);
int64_t output_table(struct output *o, struct tp_result *r);
int64_t output_line(struct output *o, struct tp_result *r);

/* As tp_step(), but there are no more rows when they cannot be written any more: the disk is full, the reader has left.
 */
int output_next(const struct output *o, struct tp_result *r);

/* The fewest digits that read back as the same number. */
void output_double(struct text_out *o, double v);

/* A blob as hexadecimal digits. */
void output_hex(struct text_out *o, const struct tp_result *r, int column);

/* A column's name likewise. */
enum { OUTPUT_NAME_MAX = 256 };
const char *output_name(const struct tp_result *r, int column, char to[OUTPUT_NAME_MAX]);

#endif
