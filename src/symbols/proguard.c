/* Reads a ProGuard map as a whole and writes it as a packet. */
#include "symbols/proguard.h"

#include "wire/fields.h"

#include <stdlib.h>

static int by_class(const void *a, const void *b)
{
    const struct proguard_class *x = a, *y = b;
    int c = slice_cmp(x->obfuscated, y->obfuscated);
    return c ? c : (x->line > y->line) - (x->line < y->line);
}

static int by_field(const void *a, const void *b)
{
    const struct proguard_member *x = a, *y = b;
    int c = slice_cmp(x->obfuscated, y->obfuscated);
    return c ? c : (x->line > y->line) - (x->line < y->line);
}

/* Sorts the fields of a class; one that is there twice is left once, when both say the same. */
static int fields_finish(struct proguard_map *m, struct proguard_class *class, struct error *err)
{
    if (!class->n_fields)
        return 0;
    struct proguard_member *fields = m->fields.p + class->first_field;
    qsort(fields, class->n_fields, sizeof *fields, by_field);
    size_t kept = 1;
    for (size_t i = 1; i < class->n_fields; i++) {
        const struct proguard_member *before = &fields[kept - 1];
        if (!slice_eq(before->obfuscated, fields[i].obfuscated))
            fields[kept++] = fields[i];
        else if (!slice_eq(before->name, fields[i].name))
            return error_set(err, -MRD_EFORMAT, "line %zu: the field '%.*s' has another name in line %zu",
                             fields[i].line, (int)fields[i].obfuscated.len, (const char *)fields[i].obfuscated.p,
                             before->line);
    }
    class->n_fields = kept;
    return 0;
}

static int map_finish(struct proguard_map *m, struct error *err)
{
    for (size_t i = 0; i < m->classes.n; i++)
        if (fields_finish(m, &m->classes.p[i], err) < 0)
            return err ? err->code : -MRD_EFORMAT;
    if (m->classes.n)
        qsort(m->classes.p, m->classes.n, sizeof *m->classes.p, by_class);
    for (size_t i = 1; i < m->classes.n; i++) {
        const struct proguard_class *a = &m->classes.p[i - 1], *b = a + 1;
        if (slice_eq(a->obfuscated, b->obfuscated))
            return error_set(err, -MRD_EFORMAT, "line %zu: the class '%.*s' is there in line %zu already", b->line,
                             (int)b->obfuscated.len, (const char *)b->obfuscated.p, a->line);
    }
    return 0;
}

static bool add(struct proguard_map *m, enum proguard_line kind, const struct proguard_member *line)
{
    if (kind == PROGUARD_CLASS)
        return vec_push(&m->classes, (struct proguard_class){.obfuscated = line->obfuscated,
                                                             .name = line->name,
                                                             .line = line->line,
                                                             .first_field = m->fields.n,
                                                             .first_method = m->methods.n});
    struct proguard_class *class = vec_last(&m->classes);
    if (kind == PROGUARD_FIELD) {
        class->n_fields++;
        return vec_push(&m->fields, *line);
    }
    class->n_methods++;
    return vec_push(&m->methods, *line);
}

int proguard_parse(struct proguard_map *m, struct slice text, struct error *err)
{
    *m = (struct proguard_map){0};
    size_t number = 0;
    while (text.len) {
        const uint8_t *end = memchr(text.p, '\n', text.len);
        struct slice line = slice_of(text.p, end ? (size_t)(end - text.p) : text.len);
        size_t taken = line.len + (end ? 1 : 0);
        text = slice_of(text.p + taken, text.len - taken);
        number++;

        struct proguard_member found;
        const char *why = NULL;
        enum proguard_line kind = proguard_line_parse(line, &found, &why);
        if (kind == PROGUARD_NOTHING)
            continue;
        if (kind != PROGUARD_BAD && kind != PROGUARD_CLASS && !m->classes.n)
            why = "a member stands before the first class";
        if (why)
            return error_set(err, -MRD_EFORMAT, "line %zu: %s", number, why);
        found.line = number;
        if (!add(m, kind, &found))
            return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    return map_finish(m, err);
}

static void put_field(struct pb_writer *w, const struct proguard_member *f)
{
    size_t mark = pb_begin(w, OBFUSCATED_CLASS_OBFUSCATED_MEMBERS);
    pb_put_text(w, OBFUSCATED_MEMBER_OBFUSCATED_NAME, f->obfuscated);
    pb_put_text(w, OBFUSCATED_MEMBER_DEOBFUSCATED_NAME, f->name);
    pb_end(w, mark);
}

/* A method's name is complete: what was inlined from another class says so itself. */
static void put_method(struct pb_writer *w, const struct proguard_class *class, const struct proguard_member *f)
{
    char name[2 * PROGUARD_MAX_NAME + 1];
    size_t n = 0;
    if (!memchr(f->name.p, '.', f->name.len)) {
        memcpy(name, class->name.p, class->name.len);
        n = class->name.len;
        name[n++] = '.';
    }
    memcpy(name + n, f->name.p, f->name.len);
    n += f->name.len;

    size_t mark = pb_begin(w, OBFUSCATED_CLASS_OBFUSCATED_METHODS);
    pb_put_text(w, OBFUSCATED_MEMBER_OBFUSCATED_NAME, f->obfuscated);
    pb_put_text(w, OBFUSCATED_MEMBER_DEOBFUSCATED_NAME, slice_of(name, n));
    if (f->obfuscated_lines.known) {
        pb_put_varint(w, OBFUSCATED_MEMBER_OBFUSCATED_LINE_START, f->obfuscated_lines.first);
        pb_put_varint(w, OBFUSCATED_MEMBER_OBFUSCATED_LINE_END, f->obfuscated_lines.last);
    }
    if (f->source_lines.known) {
        pb_put_varint(w, OBFUSCATED_MEMBER_SOURCE_LINE_START, f->source_lines.first);
        pb_put_varint(w, OBFUSCATED_MEMBER_SOURCE_LINE_END, f->source_lines.last);
    }
    pb_end(w, mark);
}

/* False when the packet that began at `start` becomes too large. */
static bool put_class(const struct proguard_map *m, const struct proguard_class *class, struct pb_writer *w,
                      size_t start)
{
    size_t mark = pb_begin(w, DEOBFUSCATION_MAPPING_OBFUSCATED_CLASSES);
    pb_put_text(w, OBFUSCATED_CLASS_OBFUSCATED_NAME, class->obfuscated);
    pb_put_text(w, OBFUSCATED_CLASS_DEOBFUSCATED_NAME, class->name);
    for (size_t i = 0; i < class->n_fields && !w->failed && w->n - start < PROGUARD_MAX_PACKET; i++)
        put_field(w, &m->fields.p[class->first_field + i]);
    for (size_t i = 0; i < class->n_methods && !w->failed && w->n - start < PROGUARD_MAX_PACKET; i++)
        put_method(w, class, &m->methods.p[class->first_method + i]);
    pb_end(w, mark);
    return w->n - start < PROGUARD_MAX_PACKET;
}

int proguard_write(const struct proguard_map *m, struct slice package, struct pb_writer *w, struct error *err)
{
    size_t start = w->n, packet = pb_begin(w, TRACE_PACKET), mapping = pb_begin(w, TRACE_PACKET_DEOBFUSCATION_MAPPING);
    pb_put_text(w, DEOBFUSCATION_MAPPING_PACKAGE_NAME, package);
    bool fits = true;
    for (size_t i = 0; i < m->classes.n && fits && !w->failed; i++)
        fits = put_class(m, &m->classes.p[i], w, start);
    pb_end(w, mapping);
    pb_end(w, packet);
    if (!fits)
        return error_set(err, -MRD_ELIMIT, "the names are more than a packet holds (250 MiB)");
    return w->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

void proguard_free(struct proguard_map *m)
{
    vec_free(&m->classes);
    vec_free(&m->fields);
    vec_free(&m->methods);
}
