/* Reads JSON in place: a cursor over bytes, no tree, no copies.
 *
 *     struct json_reader r = json_reader(text);
 *     struct json_text key;
 *     if (json_enter(&r, '{'))
 *         while (json_member(&r, &key))
 *             if (json_text_is(key, "name") && json_string(&r, &value)) …
 *             else json_skip(&r, NULL);
 *     if (r.status != JSON_OK) … json_error_text(&r), and r.p is where
 *
 * The caller's loops follow the nesting; the cursor keeps the depth only. Strings are handed out as they stand, with
 * their escapes; numbers as their digits. What is passed over (json_skip) is looked at 64 bytes at a time.
 *
 * Bytes that come in pieces: where a value is cut the status becomes JSON_MORE. The caller goes back to where it began
 * and tries again when there are more bytes. */
#ifndef MERIDIAN_BASE_JSON_READER_H
#define MERIDIAN_BASE_JSON_READER_H

#include "base/slice.h"

enum json_status {
    JSON_OK,
    JSON_MORE, /* the bytes end inside of a value */
    JSON_BAD,  /* this is not JSON: `problem` at `p` */
};

enum { JSON_MAX_DEPTH = 512 };

struct json_reader {
    const uint8_t *p; /* what comes next; the place of the error */
    const uint8_t *end;
    const char *problem; /* a literal */
    uint16_t depth;      /* of containers entered */
    uint8_t status;      /* enum json_status; once it is not JSON_OK everything returns false */
    bool comma_due;      /* a value has ended: a comma or the end of the container comes */
    bool lenient;        /* a comma may stand before the end of a container */
    bool whole;          /* no more bytes come: a number may end where they do */
};

/* A string between its quotes. */
struct json_text {
    struct slice raw;
    bool escaped; /* it has a backslash */
};

/* A number by its digits: (-1)^negative * (whole + fraction / 10^fraction_digits) * 10^exponent. */
struct json_number {
    struct slice text;
    uint64_t whole;
    uint64_t fraction;
    uint32_t fraction_digits; /* 0: no fraction */
    int32_t exponent;
    bool negative;
    bool integer;     /* neither a point nor an exponent */
    bool exact;       /* no digit was left out of `whole` and `fraction` */
    bool whole_exact; /* of `whole` */
};

static inline struct json_reader json_reader(struct slice text)
{
    return (struct json_reader){.p = text.p, .end = text.len ? text.p + text.len : text.p};
}

/* The first byte of what comes next, white space passed over; 0 at the end of the bytes (no error). */
int json_peek(struct json_reader *r);

/* Enters an object ('{') or array ('['). */
bool json_enter(struct json_reader *r, char open);
/* The next member's key; then its value is to be read. False at the end of the object, which is left, and on errors. */
bool json_member(struct json_reader *r, struct json_text *key);
/* True when an element comes; false at the end of the array, which is left, and on errors. */
bool json_element(struct json_reader *r);

bool json_string(struct json_reader *r, struct json_text *out);
bool json_read_number(struct json_reader *r, struct json_number *out);
/* true, false, null: 1, 0, -1 in *out. */
bool json_literal(struct json_reader *r, int *out);

/* Passes over a value, which `raw` (may be NULL) becomes. Containers are balanced by their own kind of bracket, outside
 * of strings; nothing else inside is checked. */
bool json_skip(struct json_reader *r, struct slice *raw);
/* As json_skip() with everything inside checked, to JSON_MAX_DEPTH. */
bool json_check(struct json_reader *r);

/* Latches an error at r->p; returns false. */
bool json_fail(struct json_reader *r, const char *problem);
const char *json_error_text(const struct json_reader *r);

bool json_text_is(struct json_text text, const char *literal);

enum json_unescape_mode {
    JSON_STRICT,   /* a raw control character or an unknown escape is an error */
    JSON_CONTROLS, /* only the latter is */
    JSON_TOLERANT, /* they are kept, or vanish; \u escapes become UTF-8, lone surrogates U+FFFD */
};

/* The string without escapes into `out`, which has room for raw.len bytes; its length, SIZE_MAX on an error. */
size_t json_unescape(struct json_text text, enum json_unescape_mode mode, char *out);

/* A number that is whole and fits: integers, and with `whole_reals` 1.0 and 1e3 too. */
bool json_number_i64(const struct json_number *n, bool whole_reals, int64_t *out);
/* The nearest double, correctly rounded. */
double json_number_f64(const struct json_number *n);
/* The number times 10^scale, rounded to the nearest integer, halves away from zero: decimal digits to integers without
 * a double in between. False when it does not fit. */
bool json_number_scaled(const struct json_number *n, int scale, int64_t *out);

/* A number that a whole text is ("12.5" of a string); false when there is more or less than one. */
bool json_number_of(struct slice text, struct json_number *out);

/* Where a byte is, for people. */
struct json_place {
    uint64_t byte;
    uint64_t line;   /* from 1 */
    uint64_t column; /* from 1, in bytes */
};
#define JSON_PLACE_START ((struct json_place){.line = 1, .column = 1})

/* Moves a place over bytes. */
void json_place_advance(struct json_place *place, struct slice bytes);

#endif
