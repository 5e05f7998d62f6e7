/* Compiles the formats of a file. */
#include "importer/trace_dat/dat_events.h"

static int compile(struct dat_events *e, const struct dat_format *format, bool swap, uint32_t *next_dynamic_id)
{
    struct format_file f;
    char group[256];
    if (format_file_parse(&f, format->text, NULL) || f.id >= DAT_EVENT_IDS || format->group.len >= sizeof group)
        return -MRD_EFORMAT;
    if (e->programs[f.id])
        return 0; /* the first counts */
    memcpy(group, format->group.p, format->group.len);
    group[format->group.len] = 0;
    struct event_program *p = arena_alloc(&e->arena, sizeof *p);
    if (!p)
        return -MRD_ENOMEM;
    int rc = event_program_compile(p, &f, group, PROGRAM_TYPED_OR_GENERIC, *next_dynamic_id, &e->arena, NULL);
    if (!rc && swap) {
        struct swap_program *s = arena_alloc(&e->arena, sizeof *s);
        rc = s ? swap_program_compile(s, &f, &e->arena, NULL) : -MRD_ENOMEM;
        e->swaps[f.id] = s;
    }
    if (rc)
        return rc;
    *next_dynamic_id += p->descriptor.len != 0;
    e->programs[f.id] = p;
    return 0;
}

struct dat_events *dat_events_open(const struct dat_file *f, uint32_t *next_dynamic_id)
{
    struct dat_events *e = mem_zalloc(sizeof *e);
    for (size_t i = 0; e && i < f->formats.n; i++) {
        int rc = compile(e, &f->formats.p[i], f->big, next_dynamic_id);
        if (rc == -MRD_ENOMEM) {
            dat_events_close(e);
            return NULL;
        }
        e->n_bad += rc != 0;
    }
    return e;
}

void dat_events_close(struct dat_events *e)
{
    if (!e)
        return;
    arena_free(&e->arena);
    mem_free(e);
}
