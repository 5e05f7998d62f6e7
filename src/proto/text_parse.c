/* Parses protobuf text format into wire bytes. */
#include "proto/text_format.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH  64
#define MAX_FIELDS 256 /* of one message type, for finding those given twice */

struct parser {
    const char *p, *end;
    const char *line_start;
    unsigned line;
    unsigned flags;
    unsigned depth;
    struct pb_writer *out;
    struct error *err;
    bool failed;
};

static void fail_at(struct parser *s, const char *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void fail_at(struct parser *s, const char *at, const char *fmt, ...)
{
    va_list ap;
    if (s->failed)
        return;
    s->failed = true;
    va_start(ap, fmt);
    error_vset(s->err, -MRD_EFORMAT, fmt, ap);
    va_end(ap);
    error_prefix(s->err, "%u:%u", s->line, (unsigned)(at - s->line_start) + 1);
}

static void skip_space(struct parser *s)
{
    while (s->p < s->end) {
        if (*s->p == '#') {
            while (s->p < s->end && *s->p != '\n')
                s->p++;
        } else if (*s->p == '\n') {
            s->line++;
            s->line_start = ++s->p;
        } else if (isspace((unsigned char)*s->p)) {
            s->p++;
        } else {
            return;
        }
    }
}

static bool peek(struct parser *s, char c)
{
    skip_space(s);
    return s->p < s->end && *s->p == c;
}

static bool accept_char(struct parser *s, char c)
{
    if (!peek(s, c))
        return false;
    s->p++;
    return true;
}

/* The character here, for a message. */
static const char *here(struct parser *s, char buf[8])
{
    skip_space(s);
    if (s->p == s->end)
        return "end of text";
    snprintf(buf, 8, isprint((unsigned char)*s->p) ? "'%c'" : "\\x%02x", (unsigned char)*s->p);
    return buf;
}

/* A word: identifier or number. Empty when there is none. */
static struct slice word(struct parser *s)
{
    skip_space(s);
    const char *start = s->p;
    while (s->p < s->end && (isalnum((unsigned char)*s->p) || *s->p == '_' || *s->p == '.' ||
                             ((*s->p == '-' || *s->p == '+') && (s->p == start || s->p[-1] == 'e' || s->p[-1] == 'E'))))
        s->p++;
    return slice_of(start, (size_t)(s->p - start));
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One escape behind the backslash; s->p is on the character behind it. */
static void put_escape(struct parser *s, struct pb_writer *w)
{
    static const char names[] = "abfnrtv\\'\"?", values[] = "\a\b\f\n\r\t\v\\'\"?";
    if (s->p == s->end) {
        fail_at(s, s->p, "string without an end");
        return;
    }
    char c = *s->p++;
    const char *known = strchr(names, c);
    uint8_t b = 0;
    if (c && known) {
        b = (uint8_t)values[known - names];
    } else if (c == 'x' || c == 'X') {
        int digits = 0;
        for (; digits < 2 && s->p < s->end && hex_digit(*s->p) >= 0; digits++)
            b = (uint8_t)(b << 4 | hex_digit(*s->p++));
        if (!digits)
            fail_at(s, s->p, "\\x without a digit");
    } else if (c >= '0' && c <= '7') {
        unsigned v = (unsigned)(c - '0');
        for (int i = 0; i < 2 && s->p < s->end && *s->p >= '0' && *s->p <= '7'; i++)
            v = v * 8 + (unsigned)(*s->p++ - '0');
        b = (uint8_t)v;
    } else {
        fail_at(s, s->p - 1, "unknown escape");
    }
    pb_put_raw(w, &b, 1);
}

/* One string, or several in a row, without their quotes. */
static void parse_string(struct parser *s, struct pb_writer *w)
{
    if (!peek(s, '"') && !peek(s, '\'')) {
        char b[8];
        fail_at(s, s->p, "expected a string, found %s", here(s, b));
        return;
    }
    while (!s->failed && (peek(s, '"') || peek(s, '\''))) {
        const char *start = s->p;
        char quote = *s->p++;
        while (s->p < s->end && *s->p != quote && *s->p != '\n' && !s->failed) {
            if (*s->p == '\\') {
                s->p++;
                put_escape(s, w);
            } else {
                pb_put_raw(w, s->p++, 1);
            }
        }
        if (s->p == s->end || *s->p != quote)
            fail_at(s, start, "string without an end");
        else
            s->p++;
    }
}

static bool parse_u64(struct slice t, uint64_t *v)
{
    char buf[32];
    char *end;
    if (!t.len || t.len >= sizeof buf || !isdigit(t.p[0]))
        return false;
    memcpy(buf, t.p, t.len);
    buf[t.len] = 0;
    errno = 0;
    *v = strtoull(buf, &end, 0);
    return *end == 0 && errno == 0;
}

/* An integer in [min, max]; as two's complement. */
static uint64_t parse_int(struct parser *s, int64_t min, uint64_t max)
{
    skip_space(s);
    const char *at = s->p;
    bool minus = accept_char(s, '-');
    skip_space(s);
    struct slice t = word(s);
    uint64_t v = 0;
    if (!parse_u64(t, &v)) {
        fail_at(s, at, "expected an integer, found \"%.*s\"", (int)(t.len < 40 ? t.len : 40), (const char *)t.p);
        return 0;
    }
    if (minus ? v > (uint64_t)0 - (uint64_t)min : v > max) {
        fail_at(s, at, "%s%.*s is out of range", minus ? "-" : "", (int)(t.len < 40 ? t.len : 40), (const char *)t.p);
        return 0;
    }
    return minus ? 0 - v : v;
}

static double parse_double(struct parser *s)
{
    skip_space(s);
    const char *at = s->p;
    struct slice t = word(s);
    char buf[64], *end;
    if (!t.len || t.len >= sizeof buf) {
        fail_at(s, at, "expected a number");
        return 0;
    }
    memcpy(buf, t.p, t.len);
    if (buf[t.len - 1] == 'f' && t.len > 1 && (isdigit((unsigned char)buf[t.len - 2]) || buf[t.len - 2] == '.'))
        t.len--;
    buf[t.len] = 0;
    double v = strtod(buf, &end);
    if (*end)
        fail_at(s, at, "expected a number, found \"%s\"", buf);
    return v;
}

static bool parse_bool(struct parser *s)
{
    skip_space(s);
    const char *at = s->p;
    struct slice t = word(s);
    if (slice_eq_str(t, "true") || slice_eq_str(t, "t") || slice_eq_str(t, "True") || slice_eq_str(t, "1"))
        return true;
    if (!slice_eq_str(t, "false") && !slice_eq_str(t, "f") && !slice_eq_str(t, "False") && !slice_eq_str(t, "0"))
        fail_at(s, at, "expected true or false, found \"%.*s\"", (int)(t.len < 40 ? t.len : 40), (const char *)t.p);
    return false;
}

static uint64_t parse_enum(struct parser *s, const ProtobufCEnumDescriptor *e)
{
    skip_space(s);
    const char *at = s->p;
    if (s->p < s->end && (isdigit((unsigned char)*s->p) || *s->p == '-'))
        return parse_int(s, INT32_MIN, INT32_MAX);
    struct slice t = word(s);
    char buf[128];
    if (t.len < sizeof buf) {
        memcpy(buf, t.p, t.len);
        buf[t.len] = 0;
        const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value_by_name(e, buf);
        if (v)
            return (uint64_t)(int64_t)v->value;
    }
    fail_at(s, at, "\"%.*s\" is not a value of %s", (int)(t.len < 60 ? t.len : 60), (const char *)t.p, e->short_name);
    return 0;
}

static void parse_message(struct parser *s, const ProtobufCMessageDescriptor *d, char close);

static void parse_nested(struct parser *s, const ProtobufCFieldDescriptor *f)
{
    char b[8], close;
    if (accept_char(s, '{')) {
        close = '}';
    } else if (accept_char(s, '<')) {
        close = '>';
    } else {
        fail_at(s, s->p, "expected '{' after %s, found %s", f->name, here(s, b));
        return;
    }
    if (++s->depth > MAX_DEPTH) {
        fail_at(s, s->p, "nested too deeply");
        return;
    }
    size_t mark = pb_begin(s->out, f->id);
    parse_message(s, f->descriptor, close);
    pb_end(s->out, mark);
    s->depth--;
}

static uint64_t zigzag(uint64_t v)
{
    return v << 1 ^ (0 - (v >> 63));
}

static void parse_value(struct parser *s, const ProtobufCFieldDescriptor *f)
{
    struct pb_writer text = {0};
    float flt;
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
        pb_put_varint(s->out, f->id, parse_int(s, INT32_MIN, INT32_MAX));
        break;
    case PROTOBUF_C_TYPE_SINT32:
        pb_put_varint(s->out, f->id, zigzag(parse_int(s, INT32_MIN, INT32_MAX)));
        break;
    case PROTOBUF_C_TYPE_SFIXED32:
        pb_put_fixed32(s->out, f->id, (uint32_t)parse_int(s, INT32_MIN, INT32_MAX));
        break;
    case PROTOBUF_C_TYPE_INT64:
        pb_put_varint(s->out, f->id, parse_int(s, INT64_MIN, INT64_MAX));
        break;
    case PROTOBUF_C_TYPE_SINT64:
        pb_put_varint(s->out, f->id, zigzag(parse_int(s, INT64_MIN, INT64_MAX)));
        break;
    case PROTOBUF_C_TYPE_SFIXED64:
        pb_put_fixed64(s->out, f->id, parse_int(s, INT64_MIN, INT64_MAX));
        break;
    case PROTOBUF_C_TYPE_UINT32:
        pb_put_varint(s->out, f->id, parse_int(s, 0, UINT32_MAX));
        break;
    case PROTOBUF_C_TYPE_FIXED32:
        pb_put_fixed32(s->out, f->id, (uint32_t)parse_int(s, 0, UINT32_MAX));
        break;
    case PROTOBUF_C_TYPE_UINT64:
        pb_put_varint(s->out, f->id, parse_int(s, 0, UINT64_MAX));
        break;
    case PROTOBUF_C_TYPE_FIXED64:
        pb_put_fixed64(s->out, f->id, parse_int(s, 0, UINT64_MAX));
        break;
    case PROTOBUF_C_TYPE_FLOAT: {
        uint32_t u;
        flt = (float)parse_double(s);
        memcpy(&u, &flt, 4);
        pb_put_fixed32(s->out, f->id, u);
        break;
    }
    case PROTOBUF_C_TYPE_DOUBLE:
        pb_put_double(s->out, f->id, parse_double(s));
        break;
    case PROTOBUF_C_TYPE_BOOL:
        pb_put_varint(s->out, f->id, parse_bool(s));
        break;
    case PROTOBUF_C_TYPE_ENUM:
        pb_put_varint(s->out, f->id, parse_enum(s, f->descriptor));
        break;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        parse_string(s, &text);
        pb_put_bytes(s->out, f->id, text.p, text.n);
        s->out->failed |= text.failed;
        pb_writer_free(&text);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        parse_nested(s, f);
        break;
    }
}

/* Steps over the value of an unknown field. */
static void skip_value(struct parser *s)
{
    struct pb_writer unused = {0};
    if (peek(s, '"') || peek(s, '\'')) {
        parse_string(s, &unused);
        pb_writer_free(&unused);
        return;
    }
    if (!peek(s, '{') && !peek(s, '<') && !peek(s, '[')) {
        if (!word(s).len) {
            char b[8];
            fail_at(s, s->p, "expected a value, found %s", here(s, b));
        }
        return;
    }
    unsigned open = 0;
    do {
        skip_space(s);
        if (s->p == s->end) {
            fail_at(s, s->p, "end of text inside an unknown field");
        } else if (*s->p == '"' || *s->p == '\'') {
            parse_string(s, &unused);
            pb_writer_free(&unused);
        } else {
            open += *s->p == '{' || *s->p == '<' || *s->p == '[';
            open -= *s->p == '}' || *s->p == '>' || *s->p == ']';
            s->p++;
        }
    } while (open && !s->failed);
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *d, struct slice t)
{
    char name[128];
    if (t.len + 1 >= sizeof name || t.p[t.len - 1] == '_')
        return NULL;
    memcpy(name, t.p, t.len);
    name[t.len] = 0;
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(d, name);
    if (f)
        return f;
    memcpy(name + t.len, "_", 2);
    return protobuf_c_message_descriptor_get_field_by_name(d, name);
}

/* A field that can be there once was not seen before, nor another of its oneof. */
static bool check_seen(struct parser *s, const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f,
                       bool *seen, const char *at)
{
    size_t index = (size_t)(f - d->fields);
    if (f->label == PROTOBUF_C_LABEL_REPEATED || index >= MAX_FIELDS)
        return true;
    if (seen[index])
        fail_at(s, at, "%s is given twice", f->name);
    for (unsigned i = 0; f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && i < d->n_fields && i < MAX_FIELDS; i++)
        if (seen[i] && d->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
            d->fields[i].quantifier_offset == f->quantifier_offset)
            fail_at(s, at, "%s and %s exclude each other", d->fields[i].name, f->name);
    seen[index] = true;
    return !s->failed;
}

static void parse_field(struct parser *s, const ProtobufCMessageDescriptor *d, bool *seen)
{
    char b[8];
    skip_space(s);
    const char *at = s->p;
    struct slice t = word(s);
    if (!t.len) {
        fail_at(s, at, "expected the name of a field of %s, found %s", d->short_name, here(s, b));
        return;
    }
    const ProtobufCFieldDescriptor *f = find_field(d, t);
    bool colon = accept_char(s, ':');
    if (!f && !(s->flags & TEXT_SKIP_UNKNOWN)) {
        s->p = s->p < at ? at : s->p;
        fail_at(s, at < s->line_start ? s->line_start : at, "%s has no field \"%.*s\"", d->short_name,
                (int)(t.len < 60 ? t.len : 60), (const char *)t.p);
        return;
    }
    if (!f) {
        skip_value(s);
        return;
    }
    if (!check_seen(s, d, f, seen, at < s->line_start ? s->line_start : at))
        return;
    if (!colon && f->type != PROTOBUF_C_TYPE_MESSAGE) {
        fail_at(s, s->p, "expected ':' after %s, found %s", f->name, here(s, b));
        return;
    }
    if (f->label != PROTOBUF_C_LABEL_REPEATED || !accept_char(s, '[')) {
        parse_value(s, f);
        return;
    }
    if (accept_char(s, ']'))
        return;
    do
        parse_value(s, f);
    while (!s->failed && accept_char(s, ','));
    if (!s->failed && !accept_char(s, ']'))
        fail_at(s, s->p, "expected ',' or ']', found %s", here(s, b));
}

static void parse_message(struct parser *s, const ProtobufCMessageDescriptor *d, char close)
{
    bool seen[MAX_FIELDS] = {false};
    while (!s->failed) {
        skip_space(s);
        if (s->p == s->end) {
            if (close)
                fail_at(s, s->p, "expected '%c' at the end of %s, found end of text", close, d->short_name);
            return;
        }
        if (close && accept_char(s, close))
            return;
        parse_field(s, d, seen);
        if (!s->failed && !accept_char(s, ','))
            accept_char(s, ';');
    }
}

int text_parse(const ProtobufCMessageDescriptor *d, struct slice text, unsigned flags, struct pb_writer *out,
               struct error *err)
{
    struct error local;
    if (!text.len)
        return 0;
    struct parser s = {.p = (const char *)text.p,
                       .end = (const char *)text.p + text.len,
                       .line_start = (const char *)text.p,
                       .line = 1,
                       .flags = flags,
                       .out = out,
                       .err = err ? err : &local};
    parse_message(&s, d, 0);
    if (s.failed)
        return s.err->code;
    return out->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}
