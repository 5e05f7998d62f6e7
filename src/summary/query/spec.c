/* Reads trace summary specs: which format a file has, and what is refused before protobuf-c unpacks it. */
#include "summary/query/spec.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"
#include "wire/pb_cursor.h"
#include "wire/text_format.h"

#include <string.h>

enum { SNIFFED_BYTES = 128, MAX_FIELDS = 1000000 };

/* ---- format ---- */

static const struct {
    const char *ending;
    enum spec_format format;
} endings[] = {{".pb", SPEC_BINARY}, {".textproto", SPEC_TEXT}};

static bool is_text_byte(uint8_t c)
{
    return (c >= ' ' && c < 0x7f) || (c >= '\t' && c <= '\r');
}

enum spec_format spec_format_of(const char *path, struct slice bytes)
{
    size_t len = path ? strlen(path) : 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i].ending);
        if (len >= n && strcmp(path + len - n, endings[i].ending) == 0)
            return endings[i].format;
    }
    for (size_t i = 0; i < bytes.len && i < SNIFFED_BYTES; i++)
        if (!is_text_byte(bytes.p[i]))
            return SPEC_BINARY;
    return SPEC_TEXT;
}

/* ---- what is refused ---- */

struct check {
    size_t messages, fields;
    unsigned depth;
    struct error *err;
};

static int check_message(struct check *k, const ProtobufCMessageDescriptor *d, struct slice message);

enum { MESSAGE_FIELDS = 64 }; /* no message here has as many */

/* Which field was seen that excludes `f`: itself, where it can be there once, or another of its oneof. */
static const ProtobufCFieldDescriptor *excluded_by(const ProtobufCMessageDescriptor *d,
                                                   const ProtobufCFieldDescriptor *f, const bool *seen)
{
    for (unsigned i = 0; i < d->n_fields && i < MESSAGE_FIELDS; i++) {
        const ProtobufCFieldDescriptor *other = &d->fields[i];
        if (seen[i] && ((other == f && f->type == PROTOBUF_C_TYPE_MESSAGE && f->label != PROTOBUF_C_LABEL_REPEATED) ||
                        (other != f && f->flags & other->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
                         other->quantifier_offset == f->quantifier_offset)))
            return other;
    }
    return NULL;
}

/* Two copies of a message that is there once are merged by protobuf-c, list by list: quadratic time when there are
 * many. Nobody writes that on purpose; nor two members of a oneof, of which one would be lost. */
static int check_field(struct check *k, const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f,
                       const struct pb_field *field, bool *seen)
{
    struct slice bytes = pb_bytes(field);
    const ProtobufCFieldDescriptor *other = excluded_by(d, f, seen);
    if (other)
        return other == f ? error_set(k->err, -MRD_EFORMAT, "%s is given twice", f->name)
                          : error_set(k->err, -MRD_EFORMAT, "%s and %s exclude each other", other->name, f->name);
    seen[f - d->fields] = true;
    if (f->type == PROTOBUF_C_TYPE_STRING && bytes.len && memchr(bytes.p, 0, bytes.len))
        return error_set(k->err, -MRD_EFORMAT, "%s: a NUL byte in a text", f->name);
    if (f->type == PROTOBUF_C_TYPE_STRING && utf8_prefix((const char *)bytes.p, bytes.len) != bytes.len)
        return error_set(k->err, -MRD_EFORMAT, "%s: not UTF-8", f->name);
    if (f->type != PROTOBUF_C_TYPE_MESSAGE)
        return 0;
    return field->wire == PB_BYTES ? check_message(k, f->descriptor, bytes)
                                   : error_set(k->err, -MRD_EFORMAT, "%s is not a message", f->name);
}

static int check_message(struct check *k, const ProtobufCMessageDescriptor *d, struct slice message)
{
    bool seen[MESSAGE_FIELDS] = {false};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field field;
    if (++k->messages > SPEC_MAX_MESSAGES)
        return error_set(k->err, -MRD_ELIMIT, "more than %d messages", SPEC_MAX_MESSAGES);
    if (++k->depth > SPEC_MAX_DEPTH)
        return error_set(k->err, -MRD_ELIMIT, "more than %d messages inside each other", SPEC_MAX_DEPTH);
    while (pb_next(&c, &field)) {
        if (++k->fields > MAX_FIELDS)
            return error_set(k->err, -MRD_ELIMIT, "more than %d fields", MAX_FIELDS);
        const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(d, field.id);
        if (!f)
            continue;
        int rc = f - d->fields < MESSAGE_FIELDS
                     ? check_field(k, d, f, &field, seen)
                     : error_set(k->err, -MRD_EFORMAT, "%s has too many fields", d->short_name);
        if (rc < 0)
            return rc;
    }
    k->depth--;
    return c.bad ? error_set(k->err, -MRD_EFORMAT, "%s is damaged", d->short_name) : 0;
}

int spec_check_bytes(const ProtobufCMessageDescriptor *d, struct slice message, struct error *err)
{
    struct check k = {.err = err};
    if (message.len > SPEC_MAX_BYTES)
        return error_set(err, -MRD_ELIMIT, "%zu bytes are more than the %d of a spec", message.len, SPEC_MAX_BYTES);
    return check_message(&k, d, message);
}

/* ---- reading ---- */

static void *spec_alloc(void *ctx, size_t size)
{
    (void)ctx;
    return mem_alloc(size ? size : 1);
}

static void spec_release(void *ctx, void *p)
{
    (void)ctx;
    mem_free(p);
}

static ProtobufCAllocator spec_allocator = {spec_alloc, spec_release, NULL};

static int parse_binary(struct slice bytes, trace_summary_spec **out, struct error *err)
{
    int rc = spec_check_bytes(&mrd__trace_summary_spec__descriptor, bytes, err);
    if (rc < 0)
        return rc;
    *out = mrd__trace_summary_spec__unpack(&spec_allocator, bytes.len, bytes.p);
    return *out ? 0 : error_set(err, -MRD_EFORMAT, "not a TraceSummarySpec");
}

int spec_parse(struct slice bytes, enum spec_format format, trace_summary_spec **out, struct error *err)
{
    struct pb_writer w = {0};
    *out = NULL;
    if (format == SPEC_BINARY)
        return parse_binary(bytes, out, err);
    if (bytes.len > SPEC_MAX_BYTES)
        return error_set(err, -MRD_ELIMIT, "%zu bytes are more than the %d of a spec", bytes.len, SPEC_MAX_BYTES);
    int rc = text_parse(&mrd__trace_summary_spec__descriptor, bytes, 0, &w, err);
    if (rc == 0)
        rc = parse_binary(pb_written(&w), out, err);
    pb_writer_free(&w);
    return rc;
}

int spec_read_file(const char *path, trace_summary_spec **out, struct error *err)
{
    char *text;
    size_t len;
    *out = NULL;
    int rc = file_read_all(path, SPEC_MAX_BYTES, &text, &len, err);
    if (rc < 0)
        return rc;
    rc = spec_parse(slice_of(text, len), spec_format_of(path, slice_of(text, len)), out, err);
    mem_free(text);
    return rc < 0 ? error_prefix(err, "%s", path) : 0;
}

void spec_free(trace_summary_spec *spec)
{
    if (spec)
        mrd__trace_summary_spec__free_unpacked(spec, &spec_allocator);
}
