/* Prints wire bytes as protobuf text format. */
#include "wire/pb_cursor.h"
#include "wire/text_format.h"
#include "wire/text_lex.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 64

void text_printf(struct pb_writer *w, const char *fmt, ...)
{
    char buf[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    if (n > 0)
        pb_put_raw(w, buf, (size_t)n < sizeof buf ? (size_t)n : sizeof buf - 1);
}

/* Without the '_' of a name that is taken in C. */
static int name_len(const ProtobufCFieldDescriptor *f)
{
    size_t n = strlen(f->name);
    return (int)(n && f->name[n - 1] == '_' ? n - 1 : n);
}

void text_put_indent(struct pb_writer *w, unsigned indent)
{
    for (unsigned i = 0; i < indent; i++)
        pb_put_raw(w, "  ", 2);
}

void text_put_quoted(struct pb_writer *w, struct slice s)
{
    pb_put_raw(w, "\"", 1);
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.p[i];
        if (c == '"' || c == '\\' || c == '\'')
            text_printf(w, "\\%c", c);
        else if (c == '\n')
            text_printf(w, "\\n");
        else if (c == '\t')
            text_printf(w, "\\t");
        else if (c == '\r')
            text_printf(w, "\\r");
        else if (c < 0x20 || c >= 0x7f)
            text_printf(w, "\\%03o", c);
        else
            pb_put_raw(w, &c, 1);
    }
    pb_put_raw(w, "\"", 1);
}

void text_put_double(struct pb_writer *w, double v, bool single)
{
    char buf[64];
    for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17);
         digits++) { /* the shortest that reads back the same */
        snprintf(buf, sizeof buf, "%.*g", digits, v);
        double back;
        if (sscanf(buf, "%lf", &back) == 1 && (single ? (float)back == (float)v : back == v))
            break;
    }
    text_printf(w, "%s", buf);
}

static void put_scalar(struct pb_writer *w, const ProtobufCFieldDescriptor *f, const struct pb_field *v)
{
    uint64_t u = pb_u64(v);
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        text_printf(w, "%" PRId32, (int32_t)u);
        break;
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SINT64:
        text_printf(w, "%" PRId64, pb_s64(v));
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        text_printf(w, "%" PRId64, (int64_t)u);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        text_printf(w, "%" PRIu32, (uint32_t)u);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        text_printf(w, "%" PRIu64, u);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        text_printf(w, u ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        text_put_double(w, pb_float(v), true);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        text_put_double(w, pb_double(v), false);
        break;
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumValue *e = protobuf_c_enum_descriptor_get_value(f->descriptor, (int)u);
        if (e)
            text_printf(w, "%s", e->name);
        else
            text_printf(w, "%" PRId32, (int32_t)u);
        break;
    }
    default:
        text_put_quoted(w, pb_bytes(v));
    }
}

static unsigned wire_of(ProtobufCType t)
{
    switch (t) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PB_FIXED32;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PB_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PB_BYTES;
    default:
        return PB_VARINT;
    }
}

static void put_line(struct pb_writer *w, const ProtobufCFieldDescriptor *f, const struct pb_field *v, unsigned indent)
{
    text_put_indent(w, indent);
    text_printf(w, "%.*s: ", name_len(f), f->name);
    put_scalar(w, f, v);
    pb_put_raw(w, "\n", 1);
}

/* The values of a packed field, a line each. */
static bool put_packed(struct pb_writer *w, const ProtobufCFieldDescriptor *f, const struct pb_field *v,
                       unsigned indent)
{
    unsigned wire = wire_of(f->type);
    struct pb_cursor c = pb_sub(v);
    struct pb_field one = {.id = f->id, .wire = (uint8_t)wire};
    while (c.p < c.end) {
        size_t size = wire == PB_FIXED32 ? 4 : 8;
        if (wire == PB_VARINT) {
            if (!pb_next_packed(&c, &one.u))
                return false;
        } else {
            if ((size_t)(c.end - c.p) < size)
                return false;
            one.u = 0;
            memcpy(&one.u, c.p, size);
            c.p += size;
        }
        put_line(w, f, &one, indent);
    }
    return true;
}

static void put_unknown(struct pb_writer *w, const struct pb_field *v, unsigned indent)
{
    text_put_indent(w, indent);
    text_printf(w, "%" PRIu32 ": ", v->id);
    if (v->wire == PB_BYTES)
        text_put_quoted(w, pb_bytes(v));
    else
        text_printf(w, "%" PRIu64, v->u);
    pb_put_raw(w, "\n", 1);
}

static bool print_level(const ProtobufCMessageDescriptor *d, struct slice message, unsigned indent, unsigned depth,
                        struct pb_writer *out)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field v;
    bool ok = true;
    while (pb_next(&c, &v)) {
        const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(d, v.id);
        if (f && f->type == PROTOBUF_C_TYPE_MESSAGE && v.wire == PB_BYTES && depth < MAX_DEPTH) {
            text_put_indent(out, indent);
            text_printf(out, "%.*s {\n", name_len(f), f->name);
            ok &= print_level(f->descriptor, pb_bytes(&v), indent + 1, depth + 1, out);
            text_put_indent(out, indent);
            text_printf(out, "}\n");
        } else if (f && f->type != PROTOBUF_C_TYPE_MESSAGE && wire_of(f->type) == v.wire) {
            put_line(out, f, &v, indent);
        } else if (f && v.wire == PB_BYTES && f->label == PROTOBUF_C_LABEL_REPEATED && wire_of(f->type) != PB_BYTES) {
            ok &= put_packed(out, f, &v, indent);
        } else {
            put_unknown(out, &v, indent);
        }
    }
    return ok && !c.bad;
}

bool text_print(const ProtobufCMessageDescriptor *d, struct slice message, unsigned indent, struct pb_writer *out)
{
    return !message.len || print_level(d, message, indent, 0, out);
}
