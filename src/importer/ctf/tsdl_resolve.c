/* Owns the references between fields: which earlier field a variant's tag or a sequence's length is.
 *
 * Types are shared: a type resolved once stays so, unless something in it refers to fields outside of it. Then each
 * place where it is used gets a copy of its own, since the fields found there differ. */
#include "importer/ctf/tsdl_internal.h"

#include <limits.h>
#include <string.h>

struct scope {
    const struct ctf_type *type; /* a struct */
    uint32_t visible;            /* fields before this one */
    int level;                   /* 0: the outermost */
    const struct scope *outer;
};

/* The roots that absolute paths name, outermost first. */
static const char *const root_names[] = {
    "trace.packet.header.",  "stream.packet.context.", "stream.event.header.",
    "stream.event.context.", "event.context.",         "event.fields.",
};
enum { N_ROOTS = sizeof root_names / sizeof *root_names, N_HEADERS = 3 /* roots that are read before an event's */ };

struct roots {
    struct ctf_type *type[N_ROOTS];
};

/* What was found, and how far away: the level of the scope; for a root less than any, the less the sooner it is read.
 */
struct found {
    struct ctf_field *field; /* NULL: nothing */
    int level;
};
enum { LEVEL_INSIDE = INT_MAX /* nothing outside is referred to */, LEVEL_ROOT = -1 /* of the last one */ };

static size_t component(const char *path)
{
    return strcspn(path, ".");
}

static struct ctf_field *field_named(struct tsdl_parser *p, const struct ctf_type *t, uint32_t visible,
                                     const char *name, size_t len)
{
    if (len && *name == '_') {
        name++;
        len--;
    }
    tsdl_work(p, visible);
    for (uint32_t i = visible; i-- > 0;)
        if (strncmp(t->compound.fields[i].name, name, len) == 0 && !t->compound.fields[i].name[len])
            return &t->compound.fields[i];
    return NULL;
}

/* Follows a dotted path down from a struct; NULL when it leads nowhere. */
static struct ctf_field *descend(struct tsdl_parser *p, const struct ctf_type *t, uint32_t visible, const char *path)
{
    for (;;) {
        size_t len = component(path);
        struct ctf_field *f = t->kind == CTF_STRUCT ? field_named(p, t, visible, path, len) : NULL;
        if (!f || !path[len])
            return f;
        path += len + 1;
        t = f->type;
        visible = t->kind == CTF_STRUCT ? t->compound.n : 0;
    }
}

/* As descend() from root i; of the one that is being resolved only what stands before is visible. */
static struct found descend_root(struct tsdl_parser *p, const struct scope *scope, const struct roots *roots, int i,
                                 const char *path)
{
    const struct ctf_type *t = roots->type[i];
    uint32_t visible = t && t->kind == CTF_STRUCT ? t->compound.n : 0;
    while (scope && scope->outer)
        scope = scope->outer;
    if (scope && scope->type == t)
        visible = scope->visible;
    return (struct found){visible ? descend(p, t, visible, path) : NULL, LEVEL_ROOT - (N_ROOTS - 1 - i)};
}

static struct found look_up(struct tsdl_parser *p, const struct scope *scope, const struct roots *roots,
                            const char *path)
{
    for (int i = 0; i < N_ROOTS; i++) {
        size_t len = strlen(root_names[i]);
        if (strncmp(path, root_names[i], len) == 0 && roots->type[i])
            return descend_root(p, scope, roots, i, path + len);
    }
    for (const struct scope *s = scope; s; s = s->outer) {
        struct ctf_field *f = descend(p, s->type, s->visible, path);
        if (f)
            return (struct found){f, s->level};
    }
    for (int i = N_ROOTS; i-- > 0;) { /* LTTng names fields of outer scopes without a prefix */
        struct found f = descend_root(p, scope, roots, i, path);
        if (f.field)
            return f;
    }
    return (struct found){NULL, LEVEL_INSIDE};
}

/* Returns the level of the field found, as all below do. */
static int resolve_path(struct tsdl_parser *p, struct ctf_type *t, const struct scope *scope, const struct roots *roots)
{
    if (!t->path) {
        tsdl_fail(p, "a variant has no tag");
        return LEVEL_INSIDE;
    }
    struct found found = look_up(p, scope, roots, t->path);
    struct ctf_field *f = found.field;
    if (!f || (t->kind == CTF_VARIANT ? f->type->kind != CTF_ENUM
                                      : f->type->kind != CTF_INTEGER && f->type->kind != CTF_ENUM)) {
        tsdl_fail(p, "'%s' is not %s field before its use", t->path, t->kind == CTF_VARIANT ? "an enum" : "an integer");
        return LEVEL_INSIDE;
    }
    if (t->kind == CTF_VARIANT && (t->compound.n > CTF_MAX_CHOICES || f->type->integer.n_ranges > CTF_MAX_CHOICES))
        tsdl_fail(p, "a variant of more than %d choices", CTF_MAX_CHOICES);
    if (f->slot == CTF_NO_SLOT)
        f->slot = p->m->n_slots++;
    t->path_slot = f->slot;
    t->tag_type = f->type;
    return found.level;
}

struct ctf_type *tsdl_copy_type(struct tsdl_parser *p, const struct ctf_type *t)
{
    enum { COPIED_FIELD = 16, COPIED_TYPE = 128 }; /* steps; what bounds the memory too */
    tsdl_work(p, COPIED_TYPE);
    struct ctf_type *copy = tsdl_alloc(p, sizeof *copy);
    if (!copy || p->rc)
        return NULL;
    *copy = *t;
    copy->resolved = copy->outward = false;
    copy->path_slot = CTF_NO_SLOT;
    copy->tag_type = NULL;
    if ((t->kind != CTF_STRUCT && t->kind != CTF_VARIANT) || !t->compound.n)
        return copy;
    tsdl_work(p, (uint64_t)t->compound.n * COPIED_FIELD);
    copy->compound.fields = p->rc ? NULL : tsdl_alloc(p, t->compound.n * sizeof *t->compound.fields);
    for (uint32_t i = 0; copy->compound.fields && i < t->compound.n; i++)
        copy->compound.fields[i] =
            (struct ctf_field){t->compound.fields[i].name, t->compound.fields[i].type, CTF_NO_SLOT};
    return p->rc ? NULL : copy;
}

static int lower(int a, int b)
{
    return a < b ? a : b;
}

/* Returns the outermost level that something inside refers to. `*place` may become a copy. */
static int resolve(struct tsdl_parser *p, struct ctf_type **place, const struct scope *scope, const struct roots *roots)
{
    struct ctf_type *t = *place;
    if (!t || p->rc)
        return LEVEL_INSIDE;
    if (t->resolved && !t->outward)
        return LEVEL_INSIDE;
    if (t->resolved)
        t = tsdl_copy_type(p, t);
    if (!t)
        return LEVEL_INSIDE;
    *place = t;
    t->resolved = true;
    if (t->native_order && t->kind == CTF_FLOAT)
        t->real.big_endian = p->m->big_endian;
    else if (t->native_order)
        t->integer.big_endian = p->m->big_endian;
    int lowest = LEVEL_INSIDE, level = scope ? scope->level : LEVEL_ROOT;
    if (t->kind == CTF_VARIANT || t->kind == CTF_SEQUENCE)
        lowest = resolve_path(p, t, scope, roots);
    if (t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE)
        lowest = lower(lowest, resolve(p, &t->list.element, scope, roots));
    for (uint32_t i = 0; (t->kind == CTF_STRUCT || t->kind == CTF_VARIANT) && i < t->compound.n && !p->rc; i++) {
        struct scope inside = {t, i, level + 1, scope};
        lowest = lower(lowest, resolve(p, &t->compound.fields[i].type, t->kind == CTF_STRUCT ? &inside : scope, roots));
    }
    t->outward = lowest <= level;
    return t->outward ? lowest : LEVEL_INSIDE;
}

/* Resolves root i, and tells whether it refers to headers. */
static bool resolve_root(struct tsdl_parser *p, struct ctf_type **type, struct roots *roots, int i)
{
    roots->type[i] = *type;
    if (*type && (*type)->resolved && (*type)->outward) /* the copy is what the paths inside lead to */
        roots->type[i] = *type = tsdl_copy_type(p, *type);
    return resolve(p, type, NULL, roots) <= LEVEL_ROOT - (N_ROOTS - N_HEADERS);
}

void tsdl_resolve(struct tsdl_parser *p)
{
    struct ctf_metadata *m = p->m;
    struct roots roots = {{NULL}};
    resolve_root(p, &m->packet_header, &roots, 0);
    for (size_t i = 0; i < m->streams.n && !p->rc; i++) {
        struct ctf_stream_class *s = m->streams.p[i];
        memset(&roots.type[1], 0, sizeof roots.type - sizeof roots.type[0]);
        resolve_root(p, &s->packet_context, &roots, 1);
        resolve_root(p, &s->event_header, &roots, 2);
        s->needs_headers = resolve_root(p, &s->event_context, &roots, 3);
        for (size_t e = 0; e < s->events.n && !p->rc; e++) {
            struct ctf_event_class *class = s->events.p[e];
            roots.type[4] = roots.type[5] = NULL;
            class->needs_headers = resolve_root(p, &class->context, &roots, 4);
            class->needs_headers |= resolve_root(p, &class->fields, &roots, 5);
        }
    }
}
