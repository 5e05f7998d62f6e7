/* Flows between slices: events of their own (s, t, f), and the bind_id of other events. */
#include "importer/json/chrome_json.h"
#include "importer/track/flow_tracker.h"
#include "importer/track/slice_tracker.h"

bool chrome_hex(struct slice text, uint64_t *value)
{
    size_t i = text.len > 2 && text.p[0] == '0' && (text.p[1] | 0x20) == 'x' ? 2 : 0;
    uint64_t v = 0;
    if (i == text.len || text.len - i > 16)
        return false;
    for (; i < text.len; i++) {
        uint8_t c = text.p[i], low = c | 0x20;
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            v = v << 4 | (uint64_t)(low - 'a' + 10);
        else
            return false;
    }
    *value = v;
    return true;
}

/* The number that an id stands for; false when it stands for none. */
static bool flow_id(struct chrome *c, const struct chrome_id *id, uint64_t *value)
{
    if (id->kind == CHROME_ID_INT) {
        *value = (uint64_t)id->value;
        return true;
    }
    return id->kind == CHROME_ID_TEXT && chrome_hex(strpool_view(&c->im->st->strings, (strid)id->value), value);
}

void chrome_flow(struct chrome *c, struct chrome_event *e)
{
    struct chrome_thread *t = chrome_thread_of(c, e->thread);
    struct flow_tracker *flows = c->im->flows;
    uint64_t source;
    if (!flow_id(c, &e->id, &source)) {
        chrome_event_error(c, STAT_flow_invalid_id, e);
        return;
    }
    uint32_t track = chrome_thread_track(c, t);
    uint64_t id = flow_legacy_id(flows, source, e->cat, e->name);
    if (e->phase == 's')
        flow_begin(flows, c->m->id, track, id);
    else if (e->phase == 't')
        flow_step(flows, c->m->id, track, id);
    else
        flow_end(flows, c->m->id, track, id, e->flags & CHROME_ENCLOSING, false);
}

void chrome_bind(struct chrome *c, struct chrome_event *e, uint32_t slice)
{
    uint64_t id;
    if (!flow_id(c, &e->bind_id, &id))
        return;
    bool in = e->flags & CHROME_FLOW_IN, out = e->flags & CHROME_FLOW_OUT;
    if (!in && !out)
        chrome_event_error(c, STAT_flow_without_direction, e);
    else if (slice == SLICE_NONE)
        stats_add(&c->im->st->stats, c->m->id, STAT_flow_no_enclosing_slice, 1);
    else if (in && out)
        flow_step_at(c->im->flows, c->m->id, slice, id);
    else if (out)
        flow_begin_at(c->im->flows, c->m->id, slice, id);
    else
        flow_end_at(c->im->flows, c->m->id, slice, id, false);
}
