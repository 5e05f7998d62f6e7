/* Parses tracefs `format` files. */
#include "kernel/format_file.h"

#include <ctype.h>

/* Cuts the next line off `text`, without its newline; false at the end. */
static bool next_line(struct slice *text, struct slice *line)
{
    if (!text->len)
        return false;
    const uint8_t *nl = memchr(text->p, '\n', text->len);
    size_t len = nl ? (size_t)(nl - text->p) : text->len;
    *line = slice_of(text->p, len);
    *text = slice_of(text->p + len + (nl != NULL), text->len - len - (nl != NULL));
    return true;
}

static struct slice trim(struct slice s)
{
    while (s.len && isspace(s.p[0])) {
        s.p++;
        s.len--;
    }
    while (s.len && isspace(s.p[s.len - 1]))
        s.len--;
    return s;
}

static bool parse_number(struct slice s, uint32_t *value)
{
    uint64_t v = 0;
    if (!s.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!isdigit(s.p[i]) || v > UINT32_MAX)
            return false;
        v = v * 10 + (uint64_t)(s.p[i] - '0');
    }
    *value = (uint32_t)v;
    return v <= UINT32_MAX;
}

/* The text of "KEY:TEXT;" inside a field line. */
static bool value_of(struct slice line, const char *key, struct slice *value)
{
    size_t n = strlen(key);
    for (size_t i = 0; i + n <= line.len; i++) {
        if (memcmp(line.p + i, key, n) != 0 || (i > 0 && !isspace(line.p[i - 1]) && line.p[i - 1] != ';'))
            continue;
        const uint8_t *end = memchr(line.p + i + n, ';', line.len - i - n);
        if (!end)
            return false;
        *value = slice_of(line.p + i + n, (size_t)(end - (line.p + i + n)));
        return true;
    }
    return false;
}

static bool is_word(uint8_t c)
{
    return isalnum(c) || c == '_';
}

/* Splits a C declaration such as "unsigned long args[6]" or "__data_loc char[] name" into type, name and array. */
static bool parse_declaration(struct slice text, struct format_field *f)
{
    text = trim(text);
    if (text.len && text.p[text.len - 1] == ']') {
        size_t open = text.len - 1;
        while (open > 0 && text.p[open] != '[')
            open--;
        if (text.p[open] != '[')
            return false;
        f->is_array = true;
        uint32_t n = 0;
        if (parse_number(trim(slice_of(text.p + open + 1, text.len - open - 2)), &n))
            f->count = n;
        text = trim(slice_of(text.p, open));
    }
    size_t start = text.len;
    while (start > 0 && is_word(text.p[start - 1]))
        start--;
    f->name = slice_of(text.p + start, text.len - start);
    f->type = trim(slice_of(text.p, start));
    return f->name.len > 0 && f->type.len > 0;
}

static bool parse_field(struct slice line, struct format_field *f)
{
    struct slice declaration, offset, size, sign;
    uint32_t is_signed = 0;
    memset(f, 0, sizeof *f);
    if (!value_of(line, "field:", &declaration) || !value_of(line, "offset:", &offset) ||
        !value_of(line, "size:", &size))
        return false;
    if (!parse_declaration(declaration, f) || !parse_number(offset, &f->offset) || !parse_number(size, &f->size))
        return false;
    if (value_of(line, "signed:", &sign) && !parse_number(sign, &is_signed))
        return false;
    f->is_signed = is_signed != 0;
    return true;
}

/* A field may not lie over another: then one of the two is a lie, and we cannot know which. */
static const struct format_field *overlapping(const struct format_file *f, const struct format_field *field)
{
    for (size_t i = 0; i < f->n_fields; i++) {
        const struct format_field *other = &f->fields[i];
        if (field->size && other->size && field->offset < other->offset + other->size &&
            other->offset < field->offset + field->size)
            return other;
    }
    return NULL;
}

static int add_field(struct format_file *f, struct slice line, struct error *err)
{
    struct format_field field;
    if (!parse_field(line, &field))
        return error_set(err, -MRD_EFORMAT, "unreadable field line: %.*s", (int)(line.len < 200 ? line.len : 200),
                         (const char *)line.p);
    if (field.offset > FORMAT_MAX_OFFSET || field.size > FORMAT_MAX_OFFSET ||
        field.offset + field.size > FORMAT_MAX_OFFSET)
        return error_set(err, -MRD_EFORMAT, "field %.*s at offset %u with %u bytes is outside any event",
                         (int)field.name.len, (const char *)field.name.p, field.offset, field.size);
    const struct format_field *other = overlapping(f, &field);
    if (other)
        return error_set(err, -MRD_EFORMAT, "fields %.*s and %.*s overlap", (int)other->name.len,
                         (const char *)other->name.p, (int)field.name.len, (const char *)field.name.p);
    if (f->n_fields == FORMAT_MAX_FIELDS)
        return error_set(err, -MRD_EFORMAT, "more than %d fields", FORMAT_MAX_FIELDS);
    f->fields[f->n_fields++] = field;
    return 0;
}

int format_file_parse(struct format_file *f, struct slice text, struct error *err)
{
    struct slice line;
    bool have_id = false, common = true;
    f->name = slice_of(NULL, 0);
    f->id = 0;
    f->n_common = f->n_fields = 0;
    while (next_line(&text, &line)) {
        struct slice t = trim(line);
        if (slice_starts(t, "print fmt:"))
            break;
        if (slice_starts(t, "name:")) {
            f->name = trim(slice_of(t.p + 5, t.len - 5));
        } else if (slice_starts(t, "ID:")) {
            have_id = parse_number(trim(slice_of(t.p + 3, t.len - 3)), &f->id);
        } else if (slice_starts(t, "field:")) {
            int rc = add_field(f, t, err);
            if (rc)
                return rc;
        } else if (t.len == 0 && f->n_fields && common) { /* an empty line ends the common fields */
            f->n_common = f->n_fields;
            common = false;
        }
    }
    if (!f->name.len || !have_id || f->id > UINT16_MAX)
        return error_set(err, -MRD_EFORMAT, "no name or no usable ID");
    if (common)
        f->n_common = f->n_fields;
    return 0;
}

const struct format_field *format_file_field(const struct format_file *f, const char *name)
{
    for (size_t i = 0; i < f->n_fields; i++)
        if (slice_eq_str(f->fields[i].name, name))
            return &f->fields[i];
    return NULL;
}

int page_format_parse(struct page_format *f, struct slice text, struct error *err)
{
    struct slice line;
    bool have_timestamp = false, have_commit = false, have_data = false;
    while (next_line(&text, &line)) {
        struct format_field field;
        if (!slice_starts(trim(line), "field:") || !parse_field(trim(line), &field))
            continue;
        if (slice_eq_str(field.name, "timestamp")) {
            have_timestamp = field.offset == 0 && field.size == 8;
        } else if (slice_eq_str(field.name, "commit")) {
            have_commit = field.offset == 8 && (field.size == 4 || field.size == 8);
            f->commit_size = field.size;
        } else if (slice_eq_str(field.name, "data")) {
            have_data = true;
            f->data_offset = field.offset;
        }
    }
    if (!have_timestamp || !have_commit || !have_data || f->data_offset < 8 + f->commit_size || f->data_offset > 64)
        return error_set(err, -MRD_EFORMAT, "not a page header that this recorder knows");
    return 0;
}
