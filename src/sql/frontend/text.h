/* Statements as token lists that remember where each token was written.
 *
 * A source is one piece of SQL text: what the user typed, a module, the body of a macro. A frame is one use of a
 * source: the text itself, or the body of a macro at one call. Every token knows its frame and its place in the frame's
 * source, so a place in an expanded statement can be traced back through macro calls to the user's text. Frames and
 * made-up texts live in an arena of one run of text; sources are counted. */
#ifndef MERIDIAN_SQL_FRONTEND_TEXT_H
#define MERIDIAN_SQL_FRONTEND_TEXT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/sql_token.h"
#include "base/vec.h"

enum source_kind { SOURCE_FILE, SOURCE_MODULE, SOURCE_MACRO };

struct sql_source {
    uint8_t kind; /* enum source_kind */
    int refs;
    char *name; /* "stdin", a module, a macro */
    char *text; /* NUL-terminated copy */
    size_t len;
};

/* A copy of `text` with one reference; NULL when out of memory. */
struct sql_source *sql_source_new(enum source_kind kind, const char *name, struct slice text);
struct sql_source *sql_source_ref(struct sql_source *s);
void sql_source_unref(struct sql_source *s); /* NULL is fine */

struct sql_frame {
    struct sql_source *source;
    struct sql_frame *parent; /* who called the macro or included the module; NULL at the top */
    uint32_t call_at;         /* where in the parent's source */
};

struct sql_token {
    const char *text;
    struct sql_frame *frame;
    uint32_t len;
    uint32_t at;  /* offset in frame->source */
    uint8_t kind; /* enum token_kind */
    bool made;    /* not written there: `at` is the place that made it */
};

struct sql_tokens {
    struct sql_token *p;
    size_t n;
    size_t cap;
};

/* Appends the tokens of frame->source. False when out of memory. */
bool sql_tokens_scan(struct sql_tokens *out, struct sql_frame *frame);
/* Appends the token at frame->source[*at], which is not its end, and moves *at behind it. */
bool sql_tokens_scan_one(struct sql_tokens *out, struct sql_frame *frame, size_t *at);
/* The same for a text that no frame stands for: a view of the schema. The tokens point into it. */
bool sql_tokens_scan_text(struct sql_tokens *out, const char *text, size_t len);
/* Appends the tokens of a text that nobody wrote, at the place of `at`. The text must outlive them. */
bool sql_tokens_add_made(struct sql_tokens *out, const struct sql_token *at, const char *text);
bool sql_tokens_append(struct sql_tokens *out, const struct sql_token *p, size_t n);
void sql_tokens_free(struct sql_tokens *t);

/* Tokens as one text: where they stand beside each other in their source, or a copy in the arena. NULL when out of
 * memory. */
const char *sql_tokens_text(struct arena *a, const struct sql_token *p, size_t n, size_t *len);
/* The same, always copied, with a NUL behind it. */
char *sql_tokens_join(struct arena *a, const struct sql_token *p, size_t n, size_t *len);

/* Drops blanks at both ends. */
void sql_tokens_trim(const struct sql_token **p, size_t *n);

/* A growing text for error messages. */
struct sql_message {
    char *p;
    size_t n;
    size_t cap;
    bool failed; /* out of memory: a part is missing */
};

void sql_message_add(struct sql_message *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The frames that lead to (frame, at), outermost first: file, line, column, the line and a caret each. */
void sql_message_add_frames(struct sql_message *m, const struct sql_frame *frame, uint32_t at);

/* "Traceback (most recent call last):", frames, then the message. When the statement was expanded, the expanded text
 * comes first. `statement` may be NULL. The place is the `offset`-th byte of the tokens' joined text; an offset outside
 * means the first token that is not blank. */
void sql_traceback(struct sql_message *m, const struct sql_token *p, size_t n, int64_t offset, const char *text);

#endif
