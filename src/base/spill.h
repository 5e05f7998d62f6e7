/* Memory that goes to a file when there is too much of it: pieces that are written once and read now and then.
 *
 * Up to a budget pieces are ordinary memory. Beyond it they lie in a file without a name that is mapped shared, so that
 * the kernel can write their pages out and take them away; reading brings them back. Room in the file is reserved
 * before it is used: a full disk is memory that ran out, and no fault later. Any thread may call. */
#ifndef MERIDIAN_BASE_SPILL_H
#define MERIDIAN_BASE_SPILL_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct spill;

/* An empty file without a name, to be read and written: in $TMPDIR, else in /var/tmp, else in /tmp; never on a file
 * system that is memory itself. -1 when there is none. */
int spill_file_open(void);

/* Maps `len` bytes of it from `at` on, shared; they are reserved before they are used, so that a full disk is memory
 * that ran out, and no fault later. NULL when there is no room. */
void *spill_file_map(int fd, uint64_t at, size_t len);

/* The file is made when it is first needed. NULL when out of memory. */
struct spill *spill_open(uint64_t budget_bytes);

/* A piece aligned to 64; NULL when there is neither memory nor room on the disk. */
void *spill_alloc(struct spill *s, size_t size);

/* Gives a piece back. */
void spill_free(struct spill *s, void *p, size_t size);

/* All pieces go, too. NULL is fine. */
void spill_close(struct spill *s);

#endif
