/* Reads JSON in place. */
#include "base/json_reader.h"

#include "base/json_scan.h"

enum { MOST_EXPONENT = 100000 /* larger ones mean 0 or infinity all the same */ };

bool json_fail(struct json_reader *r, const char *problem)
{
    if (r->status == JSON_OK) {
        r->status = JSON_BAD;
        r->problem = problem;
    }
    return false;
}

static bool more(struct json_reader *r)
{
    if (r->status == JSON_OK)
        r->status = JSON_MORE;
    return false;
}

const char *json_error_text(const struct json_reader *r)
{
    return r->status == JSON_MORE ? "the text ends inside a value" : r->problem ? r->problem : "no error";
}

int json_peek(struct json_reader *r)
{
    if (r->status != JSON_OK)
        return 0;
    r->p = json_scan_space(r->p, r->end);
    return r->p < r->end ? *r->p : 0;
}

bool json_enter(struct json_reader *r, char open)
{
    int c = json_peek(r);
    if (c != open)
        return r->p == r->end ? more(r) : json_fail(r, open == '{' ? "an object is expected" : "an array is expected");
    if (r->depth == JSON_MAX_DEPTH)
        return json_fail(r, "more than 512 levels of objects and arrays");
    r->depth++;
    r->p++;
    r->comma_due = false;
    return true;
}

/* Passes the comma, and leaves the container at its end. True when something comes. */
static bool next_in(struct json_reader *r, int close)
{
    int c = json_peek(r);
    bool comma = c == ',' && r->comma_due;
    if (comma) {
        r->p++;
        c = json_peek(r);
    }
    if (c == close && (!comma || r->lenient)) {
        r->p++;
        r->depth--;
        r->comma_due = true;
        return false;
    }
    if (!c && r->p == r->end)
        return more(r);
    if (r->comma_due && !comma)
        return json_fail(r, close == '}' ? "a comma or } is expected" : "a comma or ] is expected");
    r->comma_due = false;
    return r->status == JSON_OK;
}

bool json_element(struct json_reader *r)
{
    return next_in(r, ']');
}

/* A string whose quote is at r->p. */
static bool quoted(struct json_reader *r, struct json_text *out)
{
    const uint8_t *start = r->p + 1, *p = start;
    out->escaped = false;
    for (;;) {
        p = json_scan_string(p, r->end);
        if (p == r->end)
            return more(r);
        if (*p == '"')
            break;
        out->escaped = true;
        if (r->end - p < 2)
            return more(r);
        p += 2;
    }
    out->raw = slice_of(start, (size_t)(p - start));
    r->p = p + 1;
    return true;
}

bool json_member(struct json_reader *r, struct json_text *key)
{
    if (!next_in(r, '}'))
        return false;
    if (*r->p != '"')
        return json_fail(r, "a key in double quotes is expected");
    if (!quoted(r, key))
        return false;
    int c = json_peek(r);
    if (c != ':')
        return r->p == r->end ? more(r) : json_fail(r, "a colon is expected");
    r->p++;
    return true;
}

bool json_string(struct json_reader *r, struct json_text *out)
{
    int c = json_peek(r);
    if (c != '"')
        return r->p == r->end ? more(r) : json_fail(r, "a string in double quotes is expected");
    r->comma_due = true;
    return quoted(r, out);
}

static inline bool is_digit(const uint8_t *p, const uint8_t *end)
{
    return p < end && (uint8_t)(*p - '0') < 10;
}

/* Digits into *value as long as they fit; how many there were is the way p moved. */
static const uint8_t *digits(const uint8_t *p, const uint8_t *end, uint64_t *value, uint32_t *kept, bool *exact)
{
    enum { SAFE = 18 }; /* digits that fit whatever they are */
    uint64_t v = 0;
    uint32_t n = 0;
    const uint8_t *start = p;
    for (; is_digit(p, end) && p - start < SAFE; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    n = (uint32_t)(p - start);
    for (; is_digit(p, end); p++) {
        uint64_t grown;
        if (*exact && !__builtin_mul_overflow(v, 10u, &grown) &&
            !__builtin_add_overflow(grown, (uint64_t)(*p - '0'), &grown)) {
            v = grown;
            n++;
        } else {
            *exact = false;
        }
    }
    *value = v;
    *kept = n;
    return p;
}

/* The number that begins at p: where it ends. When there is none *problem says why, seen where this ends. */
static const uint8_t *scan_number(const uint8_t *p, const uint8_t *end, struct json_number *n, const char **problem)
{
    const uint8_t *start = p;
    uint32_t kept;
    *n = (struct json_number){.integer = true, .exact = true};
    *problem = NULL;
    if (p < end && *p == '-') {
        n->negative = true;
        p++;
    }
    const uint8_t *first = p;
    p = digits(p, end, &n->whole, &kept, &n->exact);
    n->whole_exact = n->exact;
    if (p == first)
        *problem = "a number is expected";
    else if (*first == '0' && p - first > 1)
        *problem = "a number begins with a zero";
    if (!*problem && p < end && *p == '.') {
        const uint8_t *point = ++p;
        bool fits = true;
        n->integer = false;
        p = digits(p, end, &n->fraction, &n->fraction_digits, &fits);
        n->exact &= fits;
        if (p == point)
            *problem = "a digit is expected behind the point";
    }
    if (!*problem && p < end && (*p == 'e' || *p == 'E')) {
        n->integer = false;
        p++;
        bool minus = p < end && *p == '-', fits = true;
        if (minus || (p < end && *p == '+'))
            p++;
        uint64_t e;
        const uint8_t *exponent = p;
        p = digits(p, end, &e, &kept, &fits);
        n->exponent = (int32_t)(!fits || e > MOST_EXPONENT ? MOST_EXPONENT : e);
        if (minus)
            n->exponent = -n->exponent;
        if (p == exponent)
            *problem = "a digit is expected in the exponent";
    }
    n->text = slice_of(start, (size_t)(p - start));
    return p;
}

bool json_read_number(struct json_reader *r, struct json_number *out)
{
    const char *problem;
    json_peek(r);
    if (r->status != JSON_OK)
        return false;
    const uint8_t *p = scan_number(r->p, r->end, out, &problem);
    if (p == r->end && !r->whole) /* it may go on */
        return more(r);
    if (problem)
        return json_fail(r, problem);
    r->p = p;
    r->comma_due = true;
    return true;
}

bool json_number_of(struct slice text, struct json_number *out)
{
    const char *problem;
    return text.len && scan_number(text.p, text.p + text.len, out, &problem) == text.p + text.len && !problem;
}

bool json_literal(struct json_reader *r, int *out)
{
    static const struct {
        const char *text;
        size_t len;
        int value;
    } literals[] = {{"true", 4, 1}, {"false", 5, 0}, {"null", 4, -1}};
    json_peek(r);
    if (r->status != JSON_OK)
        return false;
    size_t left = (size_t)(r->end - r->p);
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        size_t n = literals[i].len;
        if (left && memcmp(r->p, literals[i].text, left < n ? left : n) == 0) {
            if (left < n)
                return more(r);
            r->p += n;
            r->comma_due = true;
            *out = literals[i].value;
            return true;
        }
    }
    return left ? json_fail(r, "true, false or null is expected") : more(r);
}

bool json_skip(struct json_reader *r, struct slice *raw)
{
    int c = json_peek(r);
    const uint8_t *start = r->p;
    struct json_text text;
    struct json_number number;
    int literal;
    bool ok;
    if (c == '{' || c == '[') {
        const uint8_t *p = json_scan_container(r->p, r->end, (char)c, c == '{' ? '}' : ']');
        if (!p)
            return more(r);
        r->p = p;
        r->comma_due = true;
        ok = true;
    } else if (c == '"') {
        ok = json_string(r, &text);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        ok = json_read_number(r, &number);
    } else {
        ok = json_literal(r, &literal);
    }
    if (ok && raw)
        *raw = slice_of(start, (size_t)(r->p - start));
    return ok;
}

bool json_check(struct json_reader *r)
{
    struct json_text key;
    char kinds[JSON_MAX_DEPTH + 1];
    unsigned base = r->depth;
    bool value_due = true; /* at the value of a member, or of an element */
    for (;;) {
        int c = value_due ? json_peek(r) : 0;
        value_due = false;
        if (c == '{' || c == '[') {
            if (!json_enter(r, (char)c))
                return false;
            kinds[r->depth] = (char)c;
        } else if (c && !json_skip(r, NULL)) {
            return false;
        } else if (!c) { /* a NUL, or the end of the bytes */
            return r->p == r->end ? more(r) : json_fail(r, "a value is expected");
        }
        for (;;) {
            if (r->status != JSON_OK)
                return false;
            if (r->depth == base)
                return true;
            value_due = kinds[r->depth] == '{' ? json_member(r, &key) : json_element(r);
            if (value_due)
                break;
        }
    }
}

bool json_text_is(struct json_text text, const char *literal)
{
    return slice_eq_str(text.raw, literal);
}

void json_place_advance(struct json_place *place, struct slice bytes)
{
    const uint8_t *p = bytes.p, *end = bytes.p + bytes.len, *line = NULL;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
        line = ++p;
        place->line++;
    }
    place->byte += bytes.len;
    place->column = line ? (uint64_t)(end - line) + 1 : place->column + bytes.len;
}
