/* A handle whose trace a server holds (tp_connect()): questions go out as messages of the protocol, rows come back in
 * batches, read one at a time.
 *
 * Each answer has a connection of its own until it has been read, so that several may be open; one that is closed early
 * closes its connection, and the server stops the query. */
#ifndef MERIDIAN_API_REMOTE_H
#define MERIDIAN_API_REMOTE_H

#include "api/row_source.h"
#include "base/error.h"
#include "base/slice.h"
#include "meridian/tp.h"

struct remote;
struct remote_rows;

/* Connects to a server and asks for its status. *out is set on success only. */
int remote_open(struct remote **out, const char *address, struct error *err);
void remote_close(struct remote *r); /* NULL is fine */

/* Cuts the connection whose answer is being waited for. Async-signal-safe. */
void remote_interrupt(struct remote *r);

/* The whole text of the last failure that the server told. */
const char *remote_error(const struct remote *r);

/* Runs a text; or, with `at`, its first statement at or after *at, which moves behind it (1; 0: there was none). */
int remote_query(struct remote *r, struct slice sql, size_t *at, struct remote_rows **out, struct error *err);

/* A request without arguments, whose result does not matter. */
int remote_call(struct remote *r, int method, struct error *err);

/* A request that is answered by one message: its encoded argument fields, and field `result` of the answer. *message
 * owns what *out views, and is to be mem_free()d. */
int remote_ask(struct remote *r, int method, struct slice args, uint32_t result, uint8_t **message, struct slice *out,
               struct error *err);

/* Remembers the text of a failure that the server told; returns its code. */
int remote_failed(struct remote *r, struct slice text, struct error *err);

void remote_statements(const struct remote_rows *rows, struct tp_statements *out);
void remote_rows_close(struct remote_rows *rows); /* NULL is fine */

/* What reads them. */
extern const struct row_source remote_source;

#endif
