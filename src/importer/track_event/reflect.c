/* Walks a message along its descriptor. */
#include "importer/track_event/reflect.h"

#include "storage/column.h"
#include "wire/pb_cursor.h"

#include <nettle/base64.h>
#include <stdlib.h>

static void add_base64(struct arg_writer *w, struct slice bytes)
{
    size_t len = BASE64_ENCODE_RAW_LENGTH(bytes.len);
    char *text = mem_alloc(len ? len : 1);
    if (!text) {
        w->args->failed = true;
        return;
    }
    base64_encode_raw(text, bytes.len, bytes.p);
    arg_writer_add_bytes(w, ARG_STRING, slice_of(text, len));
    mem_free(text);
}

/* A scalar of a field, given its wire value. */
static void add_scalar(const struct reflect *r, struct arg_writer *w, const struct schema_field *d,
                       const struct pb_field *f)
{
    switch (d->type) {
    case SCHEMA_DOUBLE:
        arg_writer_add(w, ARG_REAL, column_f64_word(pb_double(f)));
        break;
    case SCHEMA_FLOAT:
        arg_writer_add(w, ARG_REAL, column_f64_word((double)pb_float(f)));
        break;
    case SCHEMA_INT64:
    case SCHEMA_SFIXED64:
        arg_writer_add(w, ARG_INT, pb_i64(f));
        break;
    case SCHEMA_INT32:
    case SCHEMA_SFIXED32:
        arg_writer_add(w, ARG_INT, pb_i32(f));
        break;
    case SCHEMA_SINT32:
    case SCHEMA_SINT64:
        arg_writer_add(w, ARG_INT, pb_s64(f));
        break;
    case SCHEMA_UINT64:
    case SCHEMA_FIXED64:
        arg_writer_add(w, ARG_UINT, pb_i64(f));
        break;
    case SCHEMA_UINT32:
    case SCHEMA_FIXED32:
        arg_writer_add(w, ARG_UINT, pb_u32(f));
        break;
    case SCHEMA_BOOL:
        arg_writer_add(w, ARG_BOOL, pb_bool(f));
        break;
    case SCHEMA_ENUM: {
        strid name = schema_enum_name(r->schema, d->type_name, pb_i32(f));
        if (name)
            arg_writer_add(w, ARG_STRING, name);
        else
            arg_writer_add(w, ARG_INT, pb_i32(f));
        break;
    }
    default:
        break;
    }
}

static void add_value(const struct reflect *r, struct arg_writer *w, const struct schema_field *d,
                      const struct pb_field *f)
{
    if (d->type == SCHEMA_MESSAGE) {
        reflect_message(r, w, d->type_name, pb_bytes(f));
    } else if (d->type == SCHEMA_STRING) {
        arg_writer_add_bytes(w, ARG_STRING, pb_bytes(f));
    } else if (d->type == SCHEMA_BYTES) {
        add_base64(w, pb_bytes(f));
    } else {
        add_scalar(r, w, d, f);
    }
}

/* The entries of a packed field, each as a field of its own. */
static bool next_packed(const struct schema_field *d, struct pb_cursor *c, struct pb_field *f)
{
    switch (d->type) {
    case SCHEMA_DOUBLE:
    case SCHEMA_FIXED64:
    case SCHEMA_SFIXED64:
        if (c->end - c->p < 8)
            return false;
        memcpy(&f->u, c->p, 8);
        c->p += 8;
        f->wire = PB_FIXED64;
        return true;
    case SCHEMA_FLOAT:
    case SCHEMA_FIXED32:
    case SCHEMA_SFIXED32: {
        uint32_t v;
        if (c->end - c->p < 4)
            return false;
        memcpy(&v, c->p, 4);
        c->p += 4;
        f->u = v;
        f->wire = PB_FIXED32;
        return true;
    }
    default:
        f->wire = PB_VARINT;
        return pb_next_packed(c, &f->u);
    }
}

static bool is_length_delimited(uint8_t type)
{
    return type == SCHEMA_MESSAGE || type == SCHEMA_STRING || type == SCHEMA_BYTES || type == SCHEMA_GROUP;
}

static void add_repeated(const struct reflect *r, struct arg_writer *w, const struct schema_field *d,
                         const struct pb_field *f)
{
    uint64_t index = arg_writer_array_index(w);
    if (f->wire == PB_BYTES && !is_length_delimited(d->type)) {
        struct pb_cursor c = pb_sub(f);
        struct pb_field one = {.id = f->id};
        while (next_packed(d, &c, &one)) {
            struct arg_mark m = arg_writer_push_index(w, index++);
            add_value(r, w, d, &one);
            arg_writer_pop(w, m);
        }
    } else {
        struct arg_mark m = arg_writer_push_index(w, index++);
        add_value(r, w, d, f);
        arg_writer_pop(w, m);
    }
    arg_writer_array_set(w, index);
}

static bool is_skipped(const struct reflect *r, strid message, uint32_t field)
{
    for (size_t i = 0; i < r->n_skip; i++)
        if (r->skip[i].field == field && r->skip[i].message == message)
            return true;
    return false;
}

/* What a field is when it is not set. */
static void add_default(const struct reflect *r, struct arg_writer *w, const struct schema_field *d)
{
    static const struct pb_field zero;
    if (d->repeated || d->type == SCHEMA_MESSAGE)
        arg_writer_add(w, ARG_NULL, 0);
    else if (d->type == SCHEMA_STRING || d->type == SCHEMA_BYTES)
        arg_writer_add_bytes(w, ARG_STRING, slice_of("", 0));
    else if (d->type == SCHEMA_ENUM)
        arg_writer_add(w, ARG_STRING, schema_enum_first(r->schema, d->type_name));
    else if (d->type == SCHEMA_DOUBLE || d->type == SCHEMA_FLOAT)
        arg_writer_add(w, ARG_REAL, column_f64_word(0));
    else
        add_scalar(r, w, d, &zero);
}

static void add_defaults(const struct reflect *r, struct arg_writer *w, strid message, struct slice bytes)
{
    uint32_t n;
    const struct schema_field *fields = schema_fields(r->schema, message, &n);
    struct pb_field f;
    for (uint32_t i = 0; i < n; i++) {
        if (pb_find(bytes, fields[i].number, &f) || is_skipped(r, message, fields[i].number))
            continue;
        struct slice name = strpool_view(w->args->strings, fields[i].name);
        struct arg_mark m = arg_writer_push(w, name.p, name.len);
        add_default(r, w, &fields[i]);
        arg_writer_pop(w, m);
    }
}

void reflect_field(const struct reflect *r, struct arg_writer *w, strid message, const struct pb_field *f)
{
    const struct schema_field *known = schema_field(r->schema, message, f->id);
    if (!known || (is_length_delimited(known->type) && f->wire != PB_BYTES))
        return;
    if (is_skipped(r, message, f->id))
        return;
    struct schema_field d = *known;
    bool hooked = r->hook && d.type != SCHEMA_MESSAGE;
    if (hooked && r->hook(r->hook_ctx, w, message, d.name, f, true))
        return;
    struct slice name = strpool_view(w->args->strings, d.name);
    struct arg_mark m = arg_writer_push(w, name.p, name.len);
    if (d.repeated)
        add_repeated(r, w, &d, f);
    else
        add_value(r, w, &d, f);
    arg_writer_pop(w, m);
    if (hooked)
        r->hook(r->hook_ctx, w, message, d.name, f, false);
}

void reflect_message(const struct reflect *r, struct arg_writer *w, strid message, struct slice bytes)
{
    if (w->depth >= ARG_MAX_DEPTH)
        return;
    w->depth++;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    bool empty = true;
    for (; pb_next(&c, &f); empty = false)
        reflect_field(r, w, message, &f);
    if (empty && w->key_len) /* it is there, with nothing in it */
        arg_writer_add(w, ARG_NULL, 0);
    else if (r->defaults)
        add_defaults(r, w, message, bytes);
    w->depth--;
}
