/* What a module has made, so that one that fails leaves nothing half made.
 *
 * Only things of names that were free are noted: what a module put in the place of something stays. */
#ifndef MERIDIAN_SQL_DIALECT_UNDO_H
#define MERIDIAN_SQL_DIALECT_UNDO_H

#include "sql/dialect/exec.h"

/* Notes a thing while a module runs. -MRD_ENOMEM: the thing is unmade. */
int undo_note(struct exec *x, enum undo_kind kind, const char *name, int n_args);

/* For statements that go to SQLite as they stand: undo_before() what is in the schema, undo_after() notes what is new.
 */
int64_t undo_before(struct exec *x);
int undo_after(struct exec *x, int64_t before);

size_t undo_mark(const struct dialect *d);
void undo_keep(struct dialect *d, size_t mark); /* the module is whole */
void undo_back_to(struct dialect *d, size_t mark);

/* Unmakes one thing. */
void undo_make(struct dialect *d, enum undo_kind kind, const char *name, int n_args);

#endif
