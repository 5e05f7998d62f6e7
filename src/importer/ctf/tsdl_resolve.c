/* Owns the references between fields: which earlier field a variant's tag or a sequence's length is. */
#include "importer/ctf/tsdl_internal.h"

#include <string.h>

struct scope {
    const struct ctf_type *type; /* a struct */
    uint32_t visible;            /* fields before this one */
    const struct scope *outer;
};

/* The roots that absolute paths name, outermost first. */
static const char *const root_names[] = {
    "trace.packet.header.",  "stream.packet.context.", "stream.event.header.",
    "stream.event.context.", "event.context.",         "event.fields.",
};
enum { N_ROOTS = sizeof root_names / sizeof *root_names };

struct roots {
    struct ctf_type *type[N_ROOTS];
};

static size_t component(const char *path)
{
    return strcspn(path, ".");
}

static struct ctf_field *field_named(const struct ctf_type *t, uint32_t visible, const char *name, size_t len)
{
    if (len && *name == '_') {
        name++;
        len--;
    }
    for (uint32_t i = visible; i-- > 0;)
        if (strlen(t->compound.fields[i].name) == len && memcmp(t->compound.fields[i].name, name, len) == 0)
            return &t->compound.fields[i];
    return NULL;
}

/* Follows a dotted path down from a struct; NULL when it leads nowhere. */
static struct ctf_field *descend(const struct ctf_type *t, uint32_t visible, const char *path)
{
    for (;;) {
        size_t len = component(path);
        struct ctf_field *f = t->kind == CTF_STRUCT ? field_named(t, visible, path, len) : NULL;
        if (!f || !path[len])
            return f;
        path += len + 1;
        t = f->type;
        visible = t->kind == CTF_STRUCT ? t->compound.n : 0;
    }
}

static struct ctf_field *look_up(const struct scope *scope, const struct roots *roots, const char *path)
{
    for (int i = 0; i < N_ROOTS; i++) {
        size_t len = strlen(root_names[i]);
        if (strncmp(path, root_names[i], len) == 0 && roots->type[i])
            return descend(roots->type[i], roots->type[i]->kind == CTF_STRUCT ? roots->type[i]->compound.n : 0,
                           path + len);
    }
    for (; scope; scope = scope->outer) {
        struct ctf_field *f = descend(scope->type, scope->visible, path);
        if (f)
            return f;
    }
    for (int i = N_ROOTS; i-- > 0;) { /* LTTng names fields of outer scopes without a prefix */
        struct ctf_field *f = roots->type[i] && roots->type[i]->kind == CTF_STRUCT
                                  ? descend(roots->type[i], roots->type[i]->compound.n, path)
                                  : NULL;
        if (f)
            return f;
    }
    return NULL;
}

static void resolve_path(struct tsdl_parser *p, struct ctf_type *t, const struct scope *scope,
                         const struct roots *roots)
{
    if (!t->path) {
        tsdl_fail(p, "a variant has no tag");
        return;
    }
    struct ctf_field *f = look_up(scope, roots, t->path);
    if (!f || (t->kind == CTF_VARIANT ? f->type->kind != CTF_ENUM
                                      : f->type->kind != CTF_INTEGER && f->type->kind != CTF_ENUM)) {
        tsdl_fail(p, "'%s' is not %s field before its use", t->path, t->kind == CTF_VARIANT ? "an enum" : "an integer");
        return;
    }
    if (f->slot == CTF_NO_SLOT)
        f->slot = p->m->n_slots++;
    t->path_slot = f->slot;
    t->tag_type = f->type;
}

static void resolve(struct tsdl_parser *p, struct ctf_type *t, const struct scope *scope, const struct roots *roots)
{
    if (!t || p->rc)
        return;
    if (t->native_order && t->kind == CTF_FLOAT)
        t->real.big_endian = p->m->big_endian;
    else if (t->native_order)
        t->integer.big_endian = p->m->big_endian;
    if (t->kind == CTF_VARIANT || t->kind == CTF_SEQUENCE)
        resolve_path(p, t, scope, roots);
    if (t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE)
        resolve(p, t->list.element, scope, roots);
    for (uint32_t i = 0; (t->kind == CTF_STRUCT || t->kind == CTF_VARIANT) && i < t->compound.n; i++) {
        struct scope inside = {t, i, scope};
        resolve(p, t->compound.fields[i].type, t->kind == CTF_STRUCT ? &inside : scope, roots);
    }
}

void tsdl_resolve(struct tsdl_parser *p)
{
    struct ctf_metadata *m = p->m;
    struct roots roots = {{m->packet_header}};
    resolve(p, m->packet_header, NULL, &roots);
    for (size_t i = 0; i < m->streams.n && !p->rc; i++) {
        struct ctf_stream_class *s = m->streams.p[i];
        struct ctf_type *parts[] = {s->packet_context, s->event_header, s->event_context};
        memset(&roots.type[1], 0, sizeof roots.type - sizeof roots.type[0]);
        for (int k = 0; k < 3; k++) {
            roots.type[1 + k] = parts[k];
            resolve(p, parts[k], NULL, &roots);
        }
        for (size_t e = 0; e < s->events.n && !p->rc; e++) {
            roots.type[4] = s->events.p[e]->context;
            roots.type[5] = NULL;
            resolve(p, roots.type[4], NULL, &roots);
            roots.type[5] = s->events.p[e]->fields;
            resolve(p, roots.type[5], NULL, &roots);
        }
    }
}
