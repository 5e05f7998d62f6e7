/* Blocks of a table of the trace, or of the result of SQL, with columns that people can read beside the ids.
 *
 *     struct export_source *s;
 *     int rc = export_open_table(&s, engine, "slice", trace, err);
 *     const struct export_schema *schema = export_source_schema(s);
 *     struct export_block block;
 *     while (rc >= 0 && (rc = export_next(s, &block, err)) == 1)
 *         ...
 *     export_source_close(s);
 *
 * Tables are read from their columns, chunk by chunk. The result of SQL is kept as packed columns first, since the
 * types of its columns are known only when all rows have come.
 *
 * Columns: `trace` first, the same text in each row; the table's own with its `id`; then (readable.c) machine,
 * thread_name, tid, process_name, pid, track_name and cpu where the ids of a row tell them, and args (JSON) for
 * arg_set_id, X_args for X_arg_set_id. A name that the table has itself is not made again. */
#ifndef MERIDIAN_EXPORT_SOURCE_H
#define MERIDIAN_EXPORT_SOURCE_H

#include "base/error.h"
#include "export/block.h"
#include "sql/engine.h"
#include "storage/storage.h"

struct export_source;

/* The tables that an export of everything has, by number from 0; NULL behind the last one. Their names are those of SQL
 * without what marks them as internal ("slice" for __intrinsic_slice). The table `args` is not among them: the rows
 * that have args carry them. */
const char *export_table_name(size_t i);
uint32_t export_table_rows(struct engine *e, size_t i);

/* A table of that list, or anything else that `SELECT * FROM "name"` answers. `trace` is copied. -MRD_ENOTFOUND when
 * there is no such table. *out is NULL on failure. */
int export_open_table(struct export_source **out, struct engine *e, const char *name, const char *trace,
                      struct error *err);

/* The result of the last statement of `sql`; `name` is the schema's. A column with blobs, or with texts and numbers, is
 * -MRD_ESQL, as is a column named `trace`. */
int export_open_query(struct export_source **out, struct engine *e, const char *name, const char *sql,
                      const char *trace, struct error *err);

/* Rows of a loaded trace that SQL is not needed for. */
struct export_rows {
    const char *name;          /* the schema's */
    const struct table *table; /* borrowed, finalized */
    bool numbered;             /* they have an id */
    const uint32_t *ids;       /* of each row; NULL: its number in the table */
};

/* A table of the list above; NULL: its rows are made when they are asked for. */
const struct table *export_table(const struct storage *st, size_t i);
/* Does it have a column `id` that it does not hold? */
bool export_is_numbered(const struct table *t);

/* `st`: what the ids of the rows are of; texts are added to it. */
int export_open_rows(struct export_source **out, struct storage *st, const struct export_rows *rows, const char *trace,
                     struct error *err);

/* Lives as long as the source. */
const struct export_schema *export_source_schema(const struct export_source *s);

/* The next block: 1 there is one, good until the next call; 0 there are no more; negative: failure. The engine must not
 * change the trace's tables meanwhile. */
int export_next(struct export_source *s, struct export_block *out, struct error *err);
void export_source_close(struct export_source *s); /* NULL is fine */

/* What `trace` is called: the UUID of its metadata when it has exactly one, else one made of the SHA-256 of the files'
 * bytes in their order. What cannot be read again (standard input, directories) counts by what the tables hold. */
enum { EXPORT_TRACE_ID_SIZE = 37 };
int export_trace_id(struct engine *e, const char *const *files, size_t n, char id[EXPORT_TRACE_ID_SIZE],
                    struct error *err);

/* A UUID made of the SHA-256 of the files' bytes in their order, whatever they say of themselves. */
int export_files_id(const char *const *files, size_t n, char id[EXPORT_TRACE_ID_SIZE], struct error *err);

#endif
