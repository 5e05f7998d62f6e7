/* Prints trace messages as text, and parses such text. */
#include "wire/trace_text.h"

#include "base/alloc.h"
#include "wire/pb_cursor.h"
#include "wire/text_lex.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, NAME_SLOTS = 1 << 10 };

/* ---- printing ---- */

static void put_number(struct pb_writer *w, const struct pb_field *v, unsigned indent)
{
    text_put_indent(w, indent);
    switch (v->wire) {
    case PB_FIXED64:
        text_printf(w, "%" PRIu32 ": 0x%016" PRIx64 "\n", v->id, v->u);
        return;
    case PB_FIXED32:
        text_printf(w, "%" PRIu32 ": 0x%08" PRIx64 "\n", v->id, v->u);
        return;
    case PB_VARINT:
        text_printf(w, "%" PRIu32 ": %" PRIu64 "\n", v->id, v->u);
        return;
    default:
        text_printf(w, "%" PRIu32 ": ", v->id);
        text_put_quoted(w, pb_bytes(v));
        pb_put_raw(w, "\n", 1);
    }
}

/* NaNs of other bits than the usual ones would not come back. */
static bool is_plain_real(const struct pb_field *v)
{
    double d = v->wire == PB_FIXED32 ? (double)pb_float(v) : pb_double(v);
    return !isnan(d);
}

/* Does the value survive being read as its type? */
static bool fits(const struct trace_field *f, const struct pb_field *v)
{
    switch (f->type) {
    case TRACE_TYPE_INT32:
    case TRACE_TYPE_ENUM:
        return (uint64_t)(int64_t)(int32_t)v->u == v->u;
    case TRACE_TYPE_UINT32:
    case TRACE_TYPE_SINT32:
        return v->u <= UINT32_MAX;
    case TRACE_TYPE_BOOL:
        return v->u <= 1;
    case TRACE_TYPE_FLOAT:
    case TRACE_TYPE_DOUBLE:
        return is_plain_real(v);
    default:
        return true;
    }
}

static void put_enum(struct pb_writer *w, const struct trace_field *f, int32_t value)
{
    const char *name = trace_enum_name(trace_field_enum(f), value);
    if (name)
        text_printf(w, "%s", name);
    else
        text_printf(w, "%" PRId32, value);
}

static void put_scalar(struct pb_writer *w, const struct trace_field *f, const struct pb_field *v)
{
    switch (f->type) {
    case TRACE_TYPE_INT32:
    case TRACE_TYPE_SFIXED32:
        text_printf(w, "%" PRId32, (int32_t)v->u);
        break;
    case TRACE_TYPE_INT64:
    case TRACE_TYPE_SFIXED64:
        text_printf(w, "%" PRId64, (int64_t)v->u);
        break;
    case TRACE_TYPE_SINT32:
    case TRACE_TYPE_SINT64:
        text_printf(w, "%" PRId64, pb_s64(v));
        break;
    case TRACE_TYPE_BOOL:
        text_printf(w, v->u ? "true" : "false");
        break;
    case TRACE_TYPE_ENUM:
        put_enum(w, f, (int32_t)v->u);
        break;
    case TRACE_TYPE_FLOAT:
        text_put_double(w, (double)pb_float(v), true);
        break;
    case TRACE_TYPE_DOUBLE:
        text_put_double(w, pb_double(v), false);
        break;
    case TRACE_TYPE_STRING:
    case TRACE_TYPE_BYTES:
        text_put_quoted(w, pb_bytes(v));
        break;
    default:
        text_printf(w, "%" PRIu64, v->u);
    }
}

static void put_value(struct pb_writer *w, const struct trace_field *f, const struct pb_field *v, unsigned indent)
{
    if (!fits(f, v)) {
        put_number(w, v, indent);
        return;
    }
    text_put_indent(w, indent);
    text_printf(w, "%s: ", f->name);
    put_scalar(w, f, v);
    pb_put_raw(w, "\n", 1);
}

/* The next value of a packed field. */
static bool next_packed(struct pb_cursor *c, unsigned wire, struct pb_field *one)
{
    size_t size = wire == PB_FIXED32 ? 4 : 8;
    if (wire == PB_VARINT)
        return pb_next_packed(c, &one->u);
    if ((size_t)(c->end - c->p) < size)
        return false;
    one->u = 0;
    memcpy(&one->u, c->p, size);
    c->p += size;
    return true;
}

/* Packed values that come back packed: all of them whole and of their type. */
static bool can_unpack(const struct trace_field *f, const struct pb_field *v)
{
    struct pb_cursor c = pb_sub(v);
    struct pb_field one = {.id = f->number, .wire = (uint8_t)trace_type_wire(f->type)};
    if (!f->packed || v->u == 0)
        return false;
    while (c.p < c.end)
        if (!next_packed(&c, one.wire, &one) || !fits(f, &one))
            return false;
    return true;
}

/* A list on one line, so that what follows is not taken for more of it. */
static void put_packed(struct pb_writer *w, const struct trace_field *f, const struct pb_field *v, unsigned indent)
{
    struct pb_cursor c = pb_sub(v);
    struct pb_field one = {.id = f->number, .wire = (uint8_t)trace_type_wire(f->type)};
    text_put_indent(w, indent);
    text_printf(w, "%s: [", f->name);
    for (bool first = true; c.p < c.end && next_packed(&c, one.wire, &one); first = false) {
        if (!first)
            pb_put_raw(w, ", ", 2);
        put_scalar(w, f, &one);
    }
    pb_put_raw(w, "]\n", 2);
}

static bool is_message(struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field v;
    while (pb_next(&c, &v))
        ;
    return !c.bad;
}

static bool print_level(const struct trace_message *m, struct slice message, unsigned indent, unsigned depth,
                        struct pb_writer *out);

static void put_message(const char *name, const struct trace_message *m, struct slice bytes, unsigned indent,
                        unsigned depth, struct pb_writer *out)
{
    text_put_indent(out, indent);
    if (depth >= MAX_DEPTH || !is_message(bytes)) {
        text_printf(out, "%s: ", name);
        text_put_quoted(out, bytes);
        pb_put_raw(out, "\n", 1);
        return;
    }
    text_printf(out, "%s {\n", name);
    print_level(m, bytes, indent + 1, depth + 1, out);
    text_put_indent(out, indent);
    pb_put_raw(out, "}\n", 2);
}

static bool print_level(const struct trace_message *m, struct slice message, unsigned indent, unsigned depth,
                        struct pb_writer *out)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field v;
    while (pb_next(&c, &v)) {
        const struct trace_field *f = trace_field_by_number(m, v.id);
        if (f && f->type == TRACE_TYPE_MESSAGE && v.wire == PB_BYTES)
            put_message(f->name, trace_field_message(f), pb_bytes(&v), indent, depth, out);
        else if (f && f->type != TRACE_TYPE_MESSAGE && trace_type_wire(f->type) == v.wire)
            put_value(out, f, &v, indent);
        else if (f && v.wire == PB_BYTES && f->type != TRACE_TYPE_MESSAGE && can_unpack(f, &v))
            put_packed(out, f, &v, indent);
        else
            put_number(out, &v, indent);
    }
    return !c.bad;
}

bool trace_text_print(const struct trace_message *m, struct slice message, unsigned indent, struct pb_writer *out)
{
    return print_level(m, message, indent, 0, out);
}

/* ---- parsing ---- */

/* Which field a name was, the last time: events have 600 names. */
struct name_slot {
    const struct trace_message *message;
    const struct trace_field *field;
};

struct reader {
    struct text_lexer lex;
    unsigned flags, depth;
    struct pb_writer *out;
    int (*flush)(void *ctx, struct pb_writer *out);
    void *ctx;
    int stop; /* what flush() returned */
    struct name_slot *names;
};

static const struct trace_field *find_name(struct reader *r, const struct trace_message *m, struct slice name)
{
    uint32_t hash = (uint32_t)((uintptr_t)m >> 4);
    for (size_t i = 0; i < name.len; i++)
        hash = hash * 31 + name.p[i];
    struct name_slot *slot = &r->names[hash % NAME_SLOTS];
    if (slot->message == m && slice_eq_str(name, slot->field->name))
        return slot->field;
    const struct trace_field *f = trace_field_by_name(m, (const char *)name.p, name.len);
    if (f)
        *slot = (struct name_slot){m, f};
    return f;
}

static bool is_number(struct slice word)
{
    return word.len && isdigit(word.p[0]);
}

static void read_message(struct reader *r, const struct trace_message *m, char close);

/* "{ … }" as field `number`; m NULL: a message of which nothing is known. */
static void read_nested(struct reader *r, uint32_t number, const struct trace_message *m, char close)
{
    if (++r->depth > MAX_DEPTH) {
        text_fail(&r->lex, r->lex.p, "nested too deeply");
        return;
    }
    size_t mark = pb_begin(r->out, number);
    read_message(r, m, close);
    pb_end(r->out, mark);
    r->depth--;
}

static void read_bytes(struct reader *r, uint32_t number)
{
    struct pb_writer text = {0};
    text_string(&r->lex, &text);
    pb_put_bytes(r->out, number, text.p, text.n);
    r->out->failed |= text.failed;
    pb_writer_free(&text);
}

/* "{" or "<": the character that ends it, or 0. */
static char opens(struct reader *r)
{
    return text_accept(&r->lex, '{') ? '}' : text_accept(&r->lex, '<') ? '>' : 0;
}

/* The value of a field that is given by number: how it is written says what it is on the wire. */
static void read_raw(struct reader *r, uint32_t number)
{
    char close = opens(r);
    if (close) {
        read_nested(r, number, NULL, close);
        return;
    }
    if (text_peek(&r->lex, '"') || text_peek(&r->lex, '\'')) {
        read_bytes(r, number);
        return;
    }
    const char *at = r->lex.p;
    uint64_t v = text_int(&r->lex, INT64_MIN, UINT64_MAX);
    size_t len = (size_t)(r->lex.p - at);
    bool hex = len > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    if (hex && len == 2 + 16)
        pb_put_fixed64(r->out, number, v);
    else if (hex && len == 2 + 8)
        pb_put_fixed32(r->out, number, (uint32_t)v);
    else
        pb_put_varint(r->out, number, v);
}

static uint64_t read_enum(struct reader *r, const struct trace_field *f)
{
    text_skip_space(&r->lex);
    const char *at = r->lex.p;
    if (at < r->lex.end && (isdigit((unsigned char)*at) || *at == '-'))
        return text_int(&r->lex, INT32_MIN, INT32_MAX);
    struct slice t = text_next_word(&r->lex);
    int32_t value = 0;
    if (!trace_enum_value(trace_field_enum(f), (const char *)t.p, t.len, &value))
        text_fail(&r->lex, at, "\"%.*s\" is not a value of %s", (int)(t.len < 60 ? t.len : 60), (const char *)t.p,
                  trace_field_enum(f)->name);
    return (uint64_t)(int64_t)value;
}

/* A number as its type has it on the wire. */
static uint64_t read_number(struct reader *r, const struct trace_field *f)
{
    static const struct {
        int64_t min;
        uint64_t max;
    } ranges[TRACE_N_TYPES] = {
        [TRACE_TYPE_INT32] = {INT32_MIN, INT32_MAX},    [TRACE_TYPE_SINT32] = {INT32_MIN, INT32_MAX},
        [TRACE_TYPE_SFIXED32] = {INT32_MIN, INT32_MAX}, [TRACE_TYPE_INT64] = {INT64_MIN, INT64_MAX},
        [TRACE_TYPE_SINT64] = {INT64_MIN, INT64_MAX},   [TRACE_TYPE_SFIXED64] = {INT64_MIN, INT64_MAX},
        [TRACE_TYPE_UINT32] = {0, UINT32_MAX},          [TRACE_TYPE_FIXED32] = {0, UINT32_MAX},
        [TRACE_TYPE_UINT64] = {0, UINT64_MAX},          [TRACE_TYPE_FIXED64] = {0, UINT64_MAX},
    };
    uint64_t v = 0;
    double d;
    float single;
    switch (f->type) {
    case TRACE_TYPE_DOUBLE:
        d = text_double(&r->lex);
        memcpy(&v, &d, sizeof d);
        return v;
    case TRACE_TYPE_FLOAT:
        single = (float)text_double(&r->lex);
        memcpy(&v, &single, sizeof single);
        return v;
    case TRACE_TYPE_BOOL:
        return text_bool(&r->lex);
    case TRACE_TYPE_ENUM:
        return read_enum(r, f);
    default:
        v = text_int(&r->lex, ranges[f->type].min, ranges[f->type].max);
        return f->type == TRACE_TYPE_SINT32 || f->type == TRACE_TYPE_SINT64 ? text_zigzag(v) : v;
    }
}

static void read_value(struct reader *r, const struct trace_field *f)
{
    char close;
    switch (f->type) {
    case TRACE_TYPE_MESSAGE:
        if ((close = opens(r)))
            read_nested(r, f->number, trace_field_message(f), close);
        else
            read_bytes(r, f->number); /* bytes that are no message, or lie too deep */
        return;
    case TRACE_TYPE_STRING:
    case TRACE_TYPE_BYTES:
        read_bytes(r, f->number);
        return;
    }
    uint64_t v = read_number(r, f);
    switch (trace_type_wire(f->type)) {
    case PB_FIXED64:
        pb_put_fixed64(r->out, f->number, v);
        break;
    case PB_FIXED32:
        pb_put_fixed32(r->out, f->number, (uint32_t)v);
        break;
    default:
        pb_put_varint(r->out, f->number, v);
    }
}

static void put_packed_value(struct pb_writer *w, const struct trace_field *f, uint64_t v)
{
    unsigned wire = trace_type_wire(f->type);
    if (wire == PB_VARINT)
        pb_put_raw_varint(w, v);
    else
        pb_put_raw(w, &v, wire == PB_FIXED32 ? 4 : 8);
}

/* "[a, b]" behind the opening bracket. */
static void read_list(struct reader *r, const struct trace_field *f)
{
    char b[8];
    if (text_accept(&r->lex, ']'))
        return;
    size_t mark = f->packed ? pb_begin(r->out, f->number) : 0;
    do
        if (f->packed)
            put_packed_value(r->out, f, read_number(r, f));
        else
            read_value(r, f);
    while (!r->lex.failed && text_accept(&r->lex, ','));
    if (f->packed)
        pb_end(r->out, mark);
    if (!r->lex.failed && !text_accept(&r->lex, ']'))
        text_fail(&r->lex, r->lex.p, "expected ',' or ']', found %s", text_here(&r->lex, b));
}

/* Steps over the value of a field that nobody knows. */
static void skip_value(struct reader *r)
{
    char b[8];
    unsigned open = 0;
    struct pb_writer unused = {0};
    do {
        text_skip_space(&r->lex);
        if (r->lex.p == r->lex.end) {
            text_fail(&r->lex, r->lex.p, "end of text inside an unknown field");
        } else if (*r->lex.p == '"' || *r->lex.p == '\'') {
            text_string(&r->lex, &unused);
            pb_writer_free(&unused);
        } else if (strchr("{<[}>]", *r->lex.p) && *r->lex.p) {
            open += strchr("{<[", *r->lex.p) != NULL;
            open -= strchr("}>]", *r->lex.p) != NULL && open;
            r->lex.p++;
        } else if (!text_next_word(&r->lex).len) {
            if (open)
                r->lex.p++; /* punctuation between its fields */
            else
                text_fail(&r->lex, r->lex.p, "expected a value, found %s", text_here(&r->lex, b));
        }
    } while (open && !r->lex.failed);
}

static void read_named(struct reader *r, const struct trace_field *f, bool colon)
{
    char b[8];
    if (!colon && f->type != TRACE_TYPE_MESSAGE)
        text_fail(&r->lex, r->lex.p, "expected ':' after %s, found %s", f->name, text_here(&r->lex, b));
    else if (f->repeated && text_accept(&r->lex, '['))
        read_list(r, f);
    else
        read_value(r, f);
}

static void read_field(struct reader *r, const struct trace_message *m)
{
    char b[8], *end, digits[16];
    text_skip_space(&r->lex);
    const char *at = r->lex.p;
    struct slice t = text_next_word(&r->lex);
    if (!t.len) {
        text_fail(&r->lex, at, "expected the name of a field, found %s", text_here(&r->lex, b));
        return;
    }
    if (is_number(t)) {
        unsigned long number = 0;
        if (t.len < sizeof digits) {
            memcpy(digits, t.p, t.len);
            digits[t.len] = '\0';
            number = strtoul(digits, &end, 10);
            number = *end ? 0 : number;
        }
        if (number == 0 || number > 0x1fffffff) {
            text_fail(&r->lex, at, "not a field number");
            return;
        }
        text_accept(&r->lex, ':');
        read_raw(r, (uint32_t)number);
        return;
    }
    const struct trace_field *f = m ? find_name(r, m, t) : NULL;
    if (!f && !(r->flags & TRACE_TEXT_SKIP_UNKNOWN)) {
        text_fail(&r->lex, at, "%s has no field \"%.*s\"", m && m->name ? m->name : "the message",
                  (int)(t.len < 60 ? t.len : 60), (const char *)t.p);
        return;
    }
    bool colon = text_accept(&r->lex, ':');
    if (f)
        read_named(r, f, colon);
    else
        skip_value(r);
}

static void read_message(struct reader *r, const struct trace_message *m, char close)
{
    while (!r->lex.failed && !r->stop) {
        text_skip_space(&r->lex);
        if (r->lex.p == r->lex.end) {
            if (close)
                text_fail(&r->lex, r->lex.p, "expected '%c', found end of text", close);
            return;
        }
        if (close && text_accept(&r->lex, close))
            return;
        read_field(r, m);
        if (!r->lex.failed && !text_accept(&r->lex, ','))
            text_accept(&r->lex, ';');
        if (!close && r->flush && !r->lex.failed && !r->out->failed)
            r->stop = r->flush(r->ctx, r->out);
    }
}

int trace_text_parse(const struct trace_message *m, struct slice text, unsigned flags, struct pb_writer *out,
                     int (*flush)(void *ctx, struct pb_writer *out), void *ctx, struct error *err)
{
    struct error local;
    if (!text.len)
        return 0;
    struct reader r = {.lex = text_lexer(text, err ? err : &local),
                       .flags = flags,
                       .out = out,
                       .flush = flush,
                       .ctx = ctx,
                       .names = mem_zalloc(NAME_SLOTS * sizeof *r.names)};
    if (!r.names)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    read_message(&r, m, 0);
    mem_free(r.names);
    if (r.lex.failed)
        return r.lex.err->code;
    if (r.stop)
        return r.stop;
    return out->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}
