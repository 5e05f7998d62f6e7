/* What LTTng's events of user space become: slices and instants of their threads. */
#include "importer/ctf/ctf_internal.h"

#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *begin, *end;
} pairs[] = {{"_entry", "_exit"}, {"_begin", "_end"}};

/* Providers of the tracer itself: what is loaded where. */
static const char *const own_providers[] = {"lttng_ust_statedump:", "lttng_ust_lib:", "lttng_ust_dl:"};

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

/* Is there a class named like this one, with another ending? */
static bool has_other(const struct ctf_trace *t, const char *name, const char *ending, const char *other)
{
    size_t stem = strlen(name) - strlen(ending);
    for (size_t i = 0; i < t->metadata.events.n; i++) {
        const char *n = t->metadata.events.p[i]->name;
        if (strncmp(n, name, stem) == 0 && strcmp(n + stem, other) == 0)
            return true;
    }
    return false;
}

void ust_choose(struct importer *im, struct ctf_class_use *use)
{
    const char *name = use->class->name;
    use->user_space = strcmp(ctf_env_get(&use->trace->metadata, "domain"), "ust") == 0;
    use->ust = UST_NONE;
    if (!use->user_space)
        return;
    for (size_t i = 0; i < sizeof own_providers / sizeof *own_providers; i++)
        if (strncmp(name, own_providers[i], strlen(own_providers[i])) == 0)
            return;
    use->ust = UST_INSTANT;
    use->thread_slices = true;
    use->slice_name = use->name;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        bool begin = ends_with(name, pairs[i].begin) && has_other(use->trace, name, pairs[i].begin, pairs[i].end);
        bool end = ends_with(name, pairs[i].end) && has_other(use->trace, name, pairs[i].end, pairs[i].begin);
        if (!begin && !end)
            continue;
        use->ust = begin ? UST_BEGIN : UST_END;
        use->slice_name =
            import_slice(im, slice_of(name, strlen(name) - strlen(begin ? pairs[i].begin : pairs[i].end)));
        return;
    }
}

uint32_t ust_thread(const struct ctf_row *e)
{
    int64_t tid, pid;
    if (!ctf_item_int(e->context, "vtid", &tid))
        return UTID_NONE;
    uint32_t utid = ctf_item_int(e->context, "vpid", &pid) ? process_tracker_update_thread(e->m->processes, tid, pid)
                                                           : process_tracker_thread(e->m->processes, tid);
    const struct ctf_item *name = ctf_item_find(e->context, "procname");
    if (name && name->kind == CTF_ITEM_TEXT && name->text.len) {
        strid text = import_slice(e->m->im, name->text);
        process_tracker_thread_name(e->m->processes, utid, text, THREAD_NAME_OTHER);
        process_tracker_main_thread_name(e->m->processes, utid, text);
    }
    return utid;
}

/* A call of -finstrument-functions has the function's address in place of a name. The fast variant does not tell it
 * again at the end: 0, the innermost call ends. */
static strid slice_name(const struct ctf_row *e, const struct ctf_class_use *use)
{
    char text[24];
    int64_t address;
    if (strncmp(use->class->name, "lttng_ust_cyg_profile", 21) != 0)
        return use->slice_name;
    if (!ctf_item_int(e->fields, "addr", &address))
        return use->ust == UST_END ? 0 : use->slice_name;
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)address);
    return import_str(e->m->im, text);
}

void ust_handle(const struct ctf_row *e, const struct ctf_class_use *use)
{
    struct slice_tracker *slices = e->m->im->slices;
    switch (use->ust) {
    case UST_BEGIN:
        slice_begin(slices, e->m->id, e->ts, e->track, 0, slice_name(e, use), e->args);
        break;
    case UST_END: {
        struct arg_list list = {0};
        ctf_items_to_args(&e->m->st->args, e->fields, &list);
        slice_end(slices, e->m->id, e->ts, e->track, 0, slice_name(e, use), &list);
        arg_list_free(&list);
        break;
    }
    case UST_INSTANT:
        slice_scoped(slices, e->m->id, e->ts, e->track, 0, use->slice_name, 0, e->args);
        break;
    default:
        break;
    }
}
