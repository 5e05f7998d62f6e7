/* The references between fields: which earlier field a variant's tag or a sequence's length is.
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

/* Follows the names of a CTF 2 location down from a type: through members of structs, the options of a variant (all
 * that have the rest: their fields share a slot), into elements. NULL when it leads nowhere. */
static struct ctf_field *descend_names(struct tsdl_parser *p, const struct ctf_type *t, uint32_t visible,
                                       const char *const *names, uint32_t n)
{
    struct ctf_field *first = NULL;
    while (t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE || t->kind == CTF_OPTIONAL)
        t = t->list.element;
    visible = t->kind == CTF_VARIANT || visible > t->compound.n ? t->compound.n : visible;
    tsdl_work(p, t->kind >= CTF_STRUCT ? visible : 1);
    for (uint32_t i = 0; t->kind == CTF_VARIANT && i < t->compound.n && !p->rc; i++) {
        struct ctf_field *f = descend_names(p, t->compound.fields[i].type, UINT32_MAX, names, n);
        if (f && first)
            f->slot = first->slot = first->slot == CTF_NO_SLOT ? p->m->n_slots++ : first->slot;
        first = first ? first : f;
    }
    for (uint32_t i = visible; t->kind == CTF_STRUCT && i-- > 0;) {
        struct ctf_field *f = &t->compound.fields[i];
        if (strcmp(f->name, names[0]) == 0)
            return n == 1                       ? f
                   : f->type->kind < CTF_STRUCT ? NULL
                                                : descend_names(p, f->type, UINT32_MAX, names + 1, n - 1);
    }
    return first;
}

static struct found look_up_location(struct tsdl_parser *p, const struct scope *scope, const struct roots *roots,
                                     const struct ctf_location *l)
{
    const struct scope *s = scope;
    if (l->root < 0) {
        for (uint32_t i = 0; s && i < l->climb; i++)
            s = s->outer;
        return (struct found){s ? descend_names(p, s->type, s->visible, l->names, l->n) : NULL,
                              s ? s->level : LEVEL_INSIDE};
    }
    const struct ctf_type *t = roots->type[l->root];
    uint32_t visible = t && t->kind == CTF_STRUCT ? t->compound.n : 0;
    while (s && s->outer)
        s = s->outer;
    if (s && s->type == t)
        visible = s->visible;
    return (struct found){visible ? descend_names(p, t, visible, l->names, l->n) : NULL,
                          LEVEL_ROOT - (N_ROOTS - 1 - l->root)};
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

/* TSDL's variants choose by the labels of their tag: the same as ranges of its values. */
static void choices_by_label(struct tsdl_parser *p, struct ctf_type *t, const struct ctf_type *tag)
{
    uint32_t n = tag->integer.n_ranges;
    if (t->compound.n > CTF_MAX_CHOICES || n > CTF_MAX_CHOICES)
        tsdl_fail(p, "a variant of more than %d choices", CTF_MAX_CHOICES);
    t->choices = n && !p->rc ? tsdl_alloc(p, n * sizeof *t->choices) : NULL;
    t->n_choices = t->choices ? n : 0;
    for (uint32_t i = 0; i < t->n_choices; i++) {
        const struct ctf_range *r = &tag->integer.ranges[i];
        struct ctf_choice *c = &t->choices[i];
        *c = (struct ctf_choice){r->lo, r->hi, UINT32_MAX};
        tsdl_work(p, t->compound.n);
        for (uint32_t k = t->compound.n; k-- > 0 && !p->rc;)
            if (strcmp(t->compound.fields[k].name, r->label) == 0)
                c->option = k;
    }
}

static bool is_number(const struct ctf_type *t)
{
    return t->kind == CTF_INTEGER || t->kind == CTF_ENUM || t->kind == CTF_VARIABLE;
}

/* Returns the level of the field found, as all below do. */
static int resolve_path(struct tsdl_parser *p, struct ctf_type *t, const struct scope *scope, const struct roots *roots)
{
    if (!t->path && !t->location) {
        tsdl_fail(p, "a variant has no tag");
        return LEVEL_INSIDE;
    }
    struct found found =
        t->location ? look_up_location(p, scope, roots, t->location) : look_up(p, scope, roots, t->path);
    struct ctf_field *f = found.field;
    bool by_label = t->kind == CTF_VARIANT && !t->location;
    if (!f || (by_label ? f->type->kind != CTF_ENUM : !is_number(f->type))) {
        tsdl_fail(p, "'%s' is not %s field before its use",
                  t->location ? t->location->names[t->location->n - 1] : t->path, by_label ? "an enum" : "an integer");
        return LEVEL_INSIDE;
    }
    if (by_label)
        choices_by_label(p, t, f->type);
    if (f->slot == CTF_NO_SLOT)
        f->slot = p->m->n_slots++;
    t->path_slot = f->slot;
    t->tag_type = f->type;
    return found.level;
}

/* Does reading a value take that of an earlier field? */
static bool refers(const struct ctf_type *t)
{
    return t->kind == CTF_VARIANT || t->kind == CTF_SEQUENCE || t->kind == CTF_OPTIONAL ||
           ((t->kind == CTF_TEXT || t->kind == CTF_BLOB) && t->location);
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
        copy->compound.fields[i] = (struct ctf_field){t->compound.fields[i].name, t->compound.fields[i].type,
                                                      CTF_NO_SLOT, t->compound.fields[i].role};
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
    else if (t->native_order && t->kind < CTF_VARIABLE)
        t->integer.big_endian = p->m->big_endian;
    int lowest = LEVEL_INSIDE, level = scope ? scope->level : LEVEL_ROOT;
    if (refers(t))
        lowest = resolve_path(p, t, scope, roots);
    if (t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE || t->kind == CTF_OPTIONAL)
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
