/* What handlers of ftrace events share: tracks, names, kernel symbols, args. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

#include <stdarg.h>
#include <stdio.h>

strid ftrace_symbol_of(const struct importer *im, uint32_t generation, uint64_t iid)
{
    if (generation == UINT32_MAX) /* the event is not out of a packet */
        return 0;
    struct seq_generation *gen = generation_at(im, generation);
    return gen ? interned_string(gen, INTERNED_DATA_KERNEL_SYMBOLS, iid, INTERNED_STRING_STR) : 0;
}

uint64_t *ftrace_formatted(const struct ftrace_event *e, enum ftrace_formatted how, uint64_t what)
{
    uint64_t *slot = u64map_put(&e->f->formatted, what ^ (uint64_t)how << 60, NULL);
    if (!slot)
        e->m->im->failed = true;
    return slot;
}

strid ftrace_kernel_symbol(const struct ftrace_event *e, uint64_t iid)
{
    strid name = ftrace_symbol_of(e->m->im, e->gen, iid);
    if (name)
        return name;
    uint64_t *slot = ftrace_formatted(e, FORMATTED_SYMBOL, iid);
    if (slot && !*slot)
        *slot = ftrace_name(e, "%#llx", (unsigned long long)iid);
    return slot ? (strid)*slot : 0;
}

strid ftrace_name(const struct ftrace_event *e, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    return strpool_intern(&e->m->st->strings, text, len);
}

/* Slices of a later file of text do not nest into those of the files before it. */
static uint32_t file_thread_track(const struct ftrace_event *e, uint32_t utid)
{
    bool added;
    uint64_t *track = u64map_put(&e->f->file_tracks, (uint64_t)e->line_file << 32 | utid, &added);
    if (!track) {
        e->m->im->failed = true;
        return UINT32_MAX;
    }
    struct track_dim dim = {"utid", DIM_INT, utid};
    if (added)
        *track = track_insert_row(e->m->im->tracks, e->m->id,
                                  &(struct track_spec){.type = "thread_execution",
                                                       .event_type = TRACK_SLICE,
                                                       .parent = UINT32_MAX,
                                                       .dims = &dim,
                                                       .n_dims = 1});
    return (uint32_t)*track;
}

uint32_t ftrace_make_thread_track(const struct ftrace_event *e, uint32_t utid)
{
    struct ftrace_machine *f = e->f;
    if (e->line_file)
        return file_thread_track(e, utid);
    uint32_t *known,
        track = track_intern_int(e->m->im->tracks, e->m->id, "thread_execution", TRACK_SLICE, "utid", utid, 0);
    if (track != UINT32_MAX && (known = by_id_make(&f->thread_tracks, utid)))
        *known = track + 1;
    return track;
}

uint32_t ftrace_track(const struct ftrace_event *e, enum track_kind event_type, const char *type, strid name,
                      const struct track_dim *dims, uint32_t n_dims)
{
    return track_intern(e->m->im->tracks, e->m->id,
                        &(struct track_spec){.type = type,
                                             .event_type = event_type,
                                             .name = name,
                                             .parent = UINT32_MAX,
                                             .dims = dims,
                                             .n_dims = n_dims});
}

uint32_t ftrace_track_set(const struct ftrace_event *e, const char *type, strid name, const struct track_dim *dims,
                          uint32_t n_dims)
{
    return track_set_intern(e->m->im->tracks, e->m->id,
                            &(struct track_spec){.type = type,
                                                 .event_type = TRACK_SLICE,
                                                 .name = name,
                                                 .parent = UINT32_MAX,
                                                 .dims = dims,
                                                 .n_dims = n_dims});
}

void ftrace_counter_args(const struct ftrace_event *e, int64_t ts, uint32_t track, double value, argset args)
{
    if (track == UINT32_MAX)
        return;
    counter_insert(e->m->st, &(struct counter_row){.ts = ts, .track_id = track, .value = value, .arg_set_id = args});
}

void small_args_add(const struct ftrace_event *e, struct small_args *a, const char *key, enum arg_type type,
                    int64_t word)
{
    strid k = import_str(e->m->im, key);
    if (a->n < sizeof a->items / sizeof *a->items)
        a->items[a->n++] = (struct arg){k, k, word, (uint8_t)type};
}
