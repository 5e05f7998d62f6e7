/* /recordings: SQL over recordings, one after the other, as lines of text that a database can read as a table.
 *
 * Arguments (rpc/form.h): `sql`, then for each recording `path`, and before it `trace` when it must be the recording
 * whose bytes have that name (export/source.h). An answer has five columns, separated by tabs:
 *
 *     trace   the recording's name by its bytes
 *     row     number of the row in its result, from 0
 *     ended   \N in a row of the result. The last line of each recording: '' when all its rows are there, else why not.
 *     kinds   of the last line: a letter for each column (i whole numbers, d numbers, s texts, - NULL only)
 *     cells   ['text',NULL,…]: the values as text; of the last line: the columns' names
 *
 * Whoever reads it must look for the last lines: readers of HTTP that take half an answer for a whole one exist. */
#ifndef MERIDIAN_SERVER_RECORDING_ROWS_H
#define MERIDIAN_SERVER_RECORDING_ROWS_H

#include "base/slice.h"

struct recordings;
struct rows_answer;
struct session;
struct worker;

/* Begins the answer (rpc.rows of the session), or says what is wrong with the request. */
void rows_begin(struct worker *w, struct session *s, struct slice args);

/* The next piece of it. One recording is open at a time, and its rows are made before the first is sent. */
void rows_continue(struct worker *w, struct session *s);
void rows_free(struct worker *w, struct rows_answer *a); /* NULL is fine */

#endif
