/* Parses protobuf text format into wire bytes. */
#include "wire/text_format.h"
#include "wire/text_lex.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH  64
#define MAX_FIELDS 256 /* of one message type, for finding those given twice */

struct parser {
    struct text_lexer lex;
    unsigned flags;
    unsigned depth;
    struct pb_writer *out;
};

static uint64_t parse_enum(struct parser *s, const ProtobufCEnumDescriptor *e)
{
    text_skip_space(&s->lex);
    const char *at = s->lex.p;
    if (s->lex.p < s->lex.end && (isdigit((unsigned char)*s->lex.p) || *s->lex.p == '-'))
        return text_int(&s->lex, INT32_MIN, INT32_MAX);
    struct slice t = text_next_word(&s->lex);
    char buf[128];
    if (t.len < sizeof buf) {
        memcpy(buf, t.p, t.len);
        buf[t.len] = 0;
        const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value_by_name(e, buf);
        if (v)
            return (uint64_t)(int64_t)v->value;
    }
    text_fail(&s->lex, at, "\"%.*s\" is not a value of %s", (int)(t.len < 60 ? t.len : 60), (const char *)t.p,
              e->short_name);
    return 0;
}

static void parse_message(struct parser *s, const ProtobufCMessageDescriptor *d, char close);

static void parse_nested(struct parser *s, const ProtobufCFieldDescriptor *f)
{
    char b[8], close;
    if (text_accept(&s->lex, '{')) {
        close = '}';
    } else if (text_accept(&s->lex, '<')) {
        close = '>';
    } else {
        text_fail(&s->lex, s->lex.p, "expected '{' after %s, found %s", f->name, text_here(&s->lex, b));
        return;
    }
    if (++s->depth > MAX_DEPTH) {
        text_fail(&s->lex, s->lex.p, "nested too deeply");
        return;
    }
    size_t mark = pb_begin(s->out, f->id);
    parse_message(s, f->descriptor, close);
    pb_end(s->out, mark);
    s->depth--;
}

/* Long: one case a type. */
static void parse_value(struct parser *s, const ProtobufCFieldDescriptor *f)
{
    struct pb_writer text = {0};
    float flt;
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
        pb_put_varint(s->out, f->id, text_int(&s->lex, INT32_MIN, INT32_MAX));
        break;
    case PROTOBUF_C_TYPE_SINT32:
        pb_put_varint(s->out, f->id, text_zigzag(text_int(&s->lex, INT32_MIN, INT32_MAX)));
        break;
    case PROTOBUF_C_TYPE_SFIXED32:
        pb_put_fixed32(s->out, f->id, (uint32_t)text_int(&s->lex, INT32_MIN, INT32_MAX));
        break;
    case PROTOBUF_C_TYPE_INT64:
        pb_put_varint(s->out, f->id, text_int(&s->lex, INT64_MIN, INT64_MAX));
        break;
    case PROTOBUF_C_TYPE_SINT64:
        pb_put_varint(s->out, f->id, text_zigzag(text_int(&s->lex, INT64_MIN, INT64_MAX)));
        break;
    case PROTOBUF_C_TYPE_SFIXED64:
        pb_put_fixed64(s->out, f->id, text_int(&s->lex, INT64_MIN, INT64_MAX));
        break;
    case PROTOBUF_C_TYPE_UINT32:
        pb_put_varint(s->out, f->id, text_int(&s->lex, 0, UINT32_MAX));
        break;
    case PROTOBUF_C_TYPE_FIXED32:
        pb_put_fixed32(s->out, f->id, (uint32_t)text_int(&s->lex, 0, UINT32_MAX));
        break;
    case PROTOBUF_C_TYPE_UINT64:
        pb_put_varint(s->out, f->id, text_int(&s->lex, 0, UINT64_MAX));
        break;
    case PROTOBUF_C_TYPE_FIXED64:
        pb_put_fixed64(s->out, f->id, text_int(&s->lex, 0, UINT64_MAX));
        break;
    case PROTOBUF_C_TYPE_FLOAT: {
        uint32_t u;
        flt = (float)text_double(&s->lex);
        memcpy(&u, &flt, 4);
        pb_put_fixed32(s->out, f->id, u);
        break;
    }
    case PROTOBUF_C_TYPE_DOUBLE:
        pb_put_double(s->out, f->id, text_double(&s->lex));
        break;
    case PROTOBUF_C_TYPE_BOOL:
        pb_put_varint(s->out, f->id, text_bool(&s->lex));
        break;
    case PROTOBUF_C_TYPE_ENUM:
        pb_put_varint(s->out, f->id, parse_enum(s, f->descriptor));
        break;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        text_string(&s->lex, &text);
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
    if (text_peek(&s->lex, '"') || text_peek(&s->lex, '\'')) {
        text_string(&s->lex, &unused);
        pb_writer_free(&unused);
        return;
    }
    if (!text_peek(&s->lex, '{') && !text_peek(&s->lex, '<') && !text_peek(&s->lex, '[')) {
        if (!text_next_word(&s->lex).len) {
            char b[8];
            text_fail(&s->lex, s->lex.p, "expected a value, found %s", text_here(&s->lex, b));
        }
        return;
    }
    unsigned open = 0;
    do {
        text_skip_space(&s->lex);
        if (s->lex.p == s->lex.end) {
            text_fail(&s->lex, s->lex.p, "end of text inside an unknown field");
        } else if (*s->lex.p == '"' || *s->lex.p == '\'') {
            text_string(&s->lex, &unused);
            pb_writer_free(&unused);
        } else {
            open += *s->lex.p == '{' || *s->lex.p == '<' || *s->lex.p == '[';
            open -= *s->lex.p == '}' || *s->lex.p == '>' || *s->lex.p == ']';
            s->lex.p++;
        }
    } while (open && !s->lex.failed);
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
        text_fail(&s->lex, at, "%s is given twice", f->name);
    for (unsigned i = 0; f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && i < d->n_fields && i < MAX_FIELDS; i++)
        if (seen[i] && d->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
            d->fields[i].quantifier_offset == f->quantifier_offset)
            text_fail(&s->lex, at, "%s and %s exclude each other", d->fields[i].name, f->name);
    seen[index] = true;
    return !s->lex.failed;
}

static void parse_field(struct parser *s, const ProtobufCMessageDescriptor *d, bool *seen)
{
    char b[8];
    text_skip_space(&s->lex);
    const char *at = s->lex.p;
    struct slice t = text_next_word(&s->lex);
    if (!t.len) {
        text_fail(&s->lex, at, "expected the name of a field of %s, found %s", d->short_name, text_here(&s->lex, b));
        return;
    }
    const ProtobufCFieldDescriptor *f = find_field(d, t);
    bool colon = text_accept(&s->lex, ':');
    if (!f && !(s->flags & TEXT_SKIP_UNKNOWN)) {
        s->lex.p = s->lex.p < at ? at : s->lex.p;
        text_fail(&s->lex, at < s->lex.line_start ? s->lex.line_start : at, "%s has no field \"%.*s\"", d->short_name,
                  (int)(t.len < 60 ? t.len : 60), (const char *)t.p);
        return;
    }
    if (!f) {
        skip_value(s);
        return;
    }
    if (!check_seen(s, d, f, seen, at < s->lex.line_start ? s->lex.line_start : at))
        return;
    if (!colon && f->type != PROTOBUF_C_TYPE_MESSAGE) {
        text_fail(&s->lex, s->lex.p, "expected ':' after %s, found %s", f->name, text_here(&s->lex, b));
        return;
    }
    if (f->label != PROTOBUF_C_LABEL_REPEATED || !text_accept(&s->lex, '[')) {
        parse_value(s, f);
        return;
    }
    if (text_accept(&s->lex, ']'))
        return;
    do
        parse_value(s, f);
    while (!s->lex.failed && text_accept(&s->lex, ','));
    if (!s->lex.failed && !text_accept(&s->lex, ']'))
        text_fail(&s->lex, s->lex.p, "expected ',' or ']', found %s", text_here(&s->lex, b));
}

static void parse_message(struct parser *s, const ProtobufCMessageDescriptor *d, char close)
{
    bool seen[MAX_FIELDS] = {false};
    while (!s->lex.failed) {
        text_skip_space(&s->lex);
        if (s->lex.p == s->lex.end) {
            if (close)
                text_fail(&s->lex, s->lex.p, "expected '%c' at the end of %s, found end of text", close, d->short_name);
            return;
        }
        if (close && text_accept(&s->lex, close))
            return;
        parse_field(s, d, seen);
        if (!s->lex.failed && !text_accept(&s->lex, ','))
            text_accept(&s->lex, ';');
    }
}

int text_parse(const ProtobufCMessageDescriptor *d, struct slice text, unsigned flags, struct pb_writer *out,
               struct error *err)
{
    struct error local;
    if (!text.len)
        return 0;
    struct parser s = {.lex = text_lexer(text, err ? err : &local), .flags = flags, .out = out};
    parse_message(&s, d, 0);
    if (s.lex.failed)
        return s.lex.err->code;
    return out->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}
