/* A thread that has the kernel map the pages of a file before the reader comes to them, and take them back behind it.
 *
 * A page of a mapped file costs a fault when it is read first: some 5 % of an import's time, which need not be the
 * reader's. What is mapped ahead is a few MB; a page that the thread did not come to in time is the reader's fault, as
 * without it. */
#ifndef MERIDIAN_IMPORTER_INPUT_READ_AHEAD_H
#define MERIDIAN_IMPORTER_INPUT_READ_AHEAD_H

#include "base/slice.h"

struct read_ahead;

/* Begins with a mapped file's first bytes. NULL when a thread cannot be had: do without. */
struct read_ahead *read_ahead_open(struct slice file);

/* Bytes before `at` have been read: their pages may go. */
void read_ahead_moved(struct read_ahead *r, size_t at);

/* Waits for the thread. NULL is fine. */
void read_ahead_close(struct read_ahead *r);

/* The pages that lie in [p, p + len) as a whole are not needed for now. */
void read_ahead_give_back(const uint8_t *p, size_t len);

#endif
