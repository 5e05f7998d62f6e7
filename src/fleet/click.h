/* Asks a ClickHouse server over HTTP: a statement out, its rows or its error back.
 *
 * Each request has a connection of its own, so that it is known whether the server got it: what is sent again on a
 * connection that the server was about to close may have been done already. The server is told to hold its answer until
 * the statement has ended (wait_end_of_query): a failure is then a status, never the end of a result. Rows come as
 * TabSeparated text with names and types, which every version has. */
#ifndef MERIDIAN_FLEET_CLICK_H
#define MERIDIAN_FLEET_CLICK_H

#include "api/row_source.h"
#include "base/slice.h"
#include "base/vec.h"

/* What a server may take of us; a false one would go on without end. */
struct click_limits {
    unsigned silence_ms; /* without a byte */
    unsigned total_ms;   /* a statement, from its first byte out to the last one in */
    uint64_t bytes;      /* of an answer */
    uint64_t rows;       /* of an answer */
    bool patient;     /* SQL of users: it may take as long as the connection lives, or user_ms, until the answer begins;
                         from there on silence_ms and total_ms hold */
    unsigned user_ms; /* a patient statement in all; 0: free */
    bool by_row;      /* total_ms and bytes hold for each row anew, and their number is free: for results that are
                         printed as they come */
};

struct click_server {
    char url[200];               /* "http://host:port" */
    const char *user, *password; /* NULL: the server's default */
    struct click_limits limits;
};

/* For what this program asks for itself: lists of three million recordings fit. */
extern const struct click_limits click_usual_limits;

/* Reads "http://host:port", "host:port" or "host" (port 8123) into s->url. -MRD_EINVALID for anything else. */
int click_parse(struct click_server *s, const char *address, struct error *err);

/* A text being made. `bad`: there was no memory. */
struct click_text {
    VEC(char)
    bytes;
    bool bad;
};
void click_put(struct click_text *t, const char *text);
void click_putf(struct click_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void click_put_quoted(struct click_text *t, const char *text, size_t n); /* 'text' as SQL has it */
void click_put_encoded(struct click_text *t, const char *text);          /* as an argument in an address */
const char *click_string(const struct click_text *t);                    /* NUL-terminated; "" when bad */
void click_text_free(struct click_text *t);

/* The same server with what SQL of users may take, and what their results may. */
struct click_server click_patient(const struct click_server *s);
struct click_server click_for_users(const struct click_server *s);

/* Runs a statement that gives no rows. `settings`: "&name=value…" for the address, or NULL. `data`: what an INSERT
 * takes, p NULL: none. The error's text begins with the server's address. -MRD_ESQL: the server refused the statement
 * and says why; -MRD_ELIMIT, -MRD_ETIMEOUT: it goes beyond its limits; other codes: it could not be asked. */
int click_run(const struct click_server *s, const char *sql, const char *settings, struct slice data,
              struct error *err);

/* Runs an INSERT whose data is in pieces. */
int click_insert(const struct click_server *s, const char *sql, const struct slice *pieces, size_t n,
                 struct error *err);

/* Runs a statement and appends its answer as it comes, in the format that the statement names. */
int click_fetch(const struct click_server *s, const char *sql, struct click_text *out, struct error *err);

/* Runs a statement and reads its rows. *out is NULL on failure. */
struct click_rows;
int click_query(const struct click_server *s, const char *sql, const char *settings, struct click_rows **out,
                struct error *err);
int click_step(struct click_rows *r, struct error *err); /* 1, 0, negative */
/* The same of a statement of ours, whose rows have at least so many cells, none of them NULL: -MRD_EFORMAT where the
 * server says something else. */
int click_step_whole(struct click_rows *r, int cells, struct error *err);
int click_columns(const struct click_rows *r);
const char *click_cell(const struct click_rows *r, int column); /* NULL for NULL */
uint64_t click_u64(const struct click_rows *r, int column);
void click_close(struct click_rows *r); /* NULL is fine */

/* The first cell of the first row, into `out`; "" when there is none. */
int click_one(const struct click_server *s, const char *sql, char *out, size_t room, struct error *err);

/* The rows as those of a result of the public API: whole numbers that fit, doubles, texts. */
extern const struct row_source click_source;

#endif
