/* ClickHouse's Native format: blocks of columns, as its servers pass them to each other.
 *
 * A block stands by itself: what is written is what an INSERT … FORMAT Native takes, block behind block. The revision
 * is 0, which every server from 18.16 on reads: varint of columns, varint of rows, then for each column its name, its
 * type and its values; no values when there are no rows. */
#ifndef MERIDIAN_EXPORT_NATIVE_H
#define MERIDIAN_EXPORT_NATIVE_H

#include "export/block.h"
#include "export/buffer.h"

/* The type of a column in a CREATE TABLE and in blocks. `low_cardinality`: texts are LowCardinality(String), except
 * those that hardly repeat; servers of 2018 need a setting for that. */
const char *native_type(const struct export_column *c, bool low_cardinality);

/* Failures of writing stay in the buffer. */
void native_put_block(struct export_buffer *b, const struct export_schema *schema, const struct export_block *block,
                      bool low_cardinality);

#endif
