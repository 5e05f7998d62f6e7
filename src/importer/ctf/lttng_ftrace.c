/* LTTng's kernel events that mean the same as ftrace's: their fields become the message that ftrace's handler reads.
 *
 * For kinds that are not the most frequent ones: those have handlers of their own in lttng_events.c. The names differ
 * in prefixes, and thread ids are called tid where ftrace says pid. Functions are addresses: LTTng tells no names of
 * them. */
#include "importer/ctf/ctf_internal.h"

#include "importer/ftrace/ftrace.h"
#include "wire/ftrace_events.h"
#include "wire/pb_writer.h"

/* Where names differ; others are looked for as they are. */
static const struct {
    const char *lttng, *ftrace;
} names[] = {
    {"net_if_receive_skb", "netif_receive_skb"},
    {"net_napi_gro_receive_entry", "napi_gro_receive_entry"},
    {"skb_kfree", "kfree_skb"},
    {"timer_hrtimer_expire_entry", "hrtimer_expire_entry"},
    {"timer_hrtimer_expire_exit", "hrtimer_expire_exit"},
    {"x86_irq_vectors_local_timer_entry", "local_timer_entry"},
    {"x86_irq_vectors_local_timer_exit", "local_timer_exit"},
};

static const struct ftrace_event_desc *desc_of(const char *event)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].lttng, event) == 0)
            event = names[i].ftrace;
    for (size_t i = 0; i < ftrace_event_count(); i++) {
        const struct ftrace_event_desc *d = ftrace_event_at(i);
        if (d->tracefs_name && strcmp(d->tracefs_name, event) == 0 && ftrace_has_handler(d->id))
            return d;
    }
    return NULL;
}

void lttng_choose_ftrace(struct ctf_class_use *use)
{
    if (!use->handler && strcmp(ctf_env_get(&use->trace->metadata, "domain"), "ust") != 0)
        use->ftrace = desc_of(use->class->name);
}

void lttng_handle_as_ftrace(const struct ctf_row *e)
{
    const struct ftrace_event_desc *d = e->use->ftrace;
    struct pb_writer *w = ctf_message(e->import);
    pb_writer_clear(w);
    for (size_t i = 0; i < e->fields->n; i++) {
        const struct ctf_item *item = &e->fields->p[i];
        const char *name = item->name ? item->name : "";
        const struct ftrace_field_desc *f = ftrace_field_by_name(d, strcmp(name, "tid") == 0 ? "pid" : name);
        if (!f)
            continue;
        if (f->type == FTRACE_FIELD_STRING && item->kind == CTF_ITEM_TEXT)
            pb_put_text(w, f->number, item->text);
        else if (f->type != FTRACE_FIELD_STRING && (item->kind == CTF_ITEM_INT || item->kind == CTF_ITEM_UINT))
            pb_put_i64(w, f->number, item->i);
    }
    e->m->im->failed |= w->failed;
    w->failed = false;
    ftrace_handle_event(e->m, &(struct ftrace_other_event){.id = d->id, .cpu = e->cpu, .ts = e->ts, .utid = e->utid},
                        pb_written(w));
}
