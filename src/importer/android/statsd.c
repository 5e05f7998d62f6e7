/* Imports atoms of statsd. Their messages are many and change with each Android: the fields of an atom that no
 * description is built in for are named by number and read by how they are written. */
#include "importer/android/android_internal.h"

#include "importer/core/text_forms.h"
#include "importer/track_event/reflect.h"
#include "importer/track_event/track_event.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEY = 64, FIRST_OWN_ATOM = 100000 /* atoms from there on belong to the device's maker */ };

struct statsd_atoms {
    struct machine_ctx *m;
    uint32_t queue;
    VEC(struct statsd_atom)
    list;
};

struct statsd_atom {
    strid name;
    argset args;
};

void statsd_close(struct statsd_atoms *s)
{
    if (!s)
        return;
    vec_free(&s->list);
    mem_free(s);
}

static void parse_atoms(void *owner, const struct sort_event *events, size_t n)
{
    struct statsd_atoms *s = owner;
    uint32_t track = android_track(s->m, "statsd_atoms", TRACK_SLICE, "Statsd Atoms");
    for (size_t i = 0; i < n; i++) {
        const struct statsd_atom *a = &s->list.p[events[i].a];
        slice_scoped(s->m->im->slices, s->m->id, events[i].ts, track, 0, a->name, 0, a->args);
    }
}

static struct statsd_atoms *atoms_of(struct machine_ctx *m)
{
    struct statsd_atoms *s = m->android->atoms;
    if (s)
        return s;
    s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->m = m;
    s->queue = sorter_add_queue(m->im->sorter, parse_atoms, s);
    if (s->queue == UINT32_MAX) {
        mem_free(s);
        return NULL;
    }
    return m->android->atoms = s;
}

static void number_fields(struct machine_ctx *m, struct slice bytes, struct arg_list *list)
{
    struct args *args = &m->st->args;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    char key[KEY];
    while (pb_next(&c, &f)) {
        const char *kind = f.wire == PB_FIXED32 ? "_assuming_float" : f.wire == PB_FIXED64 ? "_assuming_double" : "";
        snprintf(key, sizeof key, "field_%" PRIu32 "%s", f.id, kind);
        if (f.wire == PB_VARINT)
            arg_list_int(args, list, key, pb_i64(&f));
        else if (f.wire == PB_FIXED32)
            arg_list_real(args, list, key, (double)pb_float(&f));
        else if (f.wire == PB_FIXED64)
            arg_list_real(args, list, key, pb_double(&f));
        else
            arg_list_str(args, list, key, import_base64(m->im, pb_bytes(&f)));
    }
}

/* The fields of an atom whose message is known, by name. */
static void name_fields(struct machine_ctx *m, strid message, const struct pb_field *atom, struct arg_list *list)
{
    struct reflect r = {.schema = track_event_schema(m->im)};
    struct arg_writer w;
    arg_writer_init(&w, &m->st->args, list);
    reflect_field(&r, &w, message, atom);
    arg_writer_free(&w);
}

static void add_atom(struct packet *p, struct statsd_atoms *s, int64_t ts, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    struct schema *schema = track_event_schema(m->im);
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    if (!schema_load(schema, SCHEMA_STATSD))
        return;
    if (!pb_next(&c, &f)) /* the one field of an atom says which it is; an empty one is number 0 */
        f = (struct pb_field){.id = 0, .wire = PB_BYTES};
    strid message = import_str(m->im, "perfetto.protos.statsd.Atom");
    const struct schema_field *known = schema_field(schema, message, f.id);
    struct statsd_atom atom = {.name = known ? known->name : strpool_printf(&m->st->strings, "atom_%" PRIu32, f.id)};
    struct arg_list list = {0};
    if (known && known->type_name)
        name_fields(m, message, &f, &list);
    else
        number_fields(m, pb_bytes(&f), &list);
    atom.args = args_intern(&m->st->args, list.p, list.n);
    arg_list_free(&list);
    if (!known && f.id < FIRST_OWN_ATOM)
        stats_add(&m->st->stats, m->id, STAT_atom_unknown, 1);
    if (!vec_push(&s->list, atom))
        m->im->failed = true;
    else
        sorter_push(m->im->sorter, s->queue, (struct sort_event){.ts = ts, .a = s->list.n - 1});
}

enum tokenize_result statsd_tokenize(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct statsd_atoms *s = atoms_of(m);
    if (!s) {
        m->im->failed = true;
        return TOKENIZE_DONE;
    }
    struct pb_numbers times = pb_numbers(p->field, STATSD_ATOM_TIMESTAMP_NANOS);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint64_t ts;
    while (pb_next(&c, &f)) {
        if (f.id != STATSD_ATOM_ATOM)
            continue;
        if (!pb_next_number(&times, &ts)) {
            stats_add(&m->st->stats, m->id, STAT_atom_timestamp_missing, 1);
            ts = (uint64_t)p->ts;
        }
        add_atom(p, s, (int64_t)ts, pb_bytes(&f));
    }
    return TOKENIZE_DONE;
}
