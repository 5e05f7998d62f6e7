/* Imports what the service says about other sessions that recorded at the same time: the states of each. */
#include "importer/system/system_internal.h"

#include "base/saturate.h"
#include "wire/fields.h"

#include <inttypes.h>

static const char *const states[] = {
    [CONCURRENT_SESSION_EVENT_STATE_DISABLED] = "DISABLED",
    [CONCURRENT_SESSION_EVENT_STATE_CONFIGURED] = "CONFIGURED",
    [CONCURRENT_SESSION_EVENT_STATE_STARTED] = "STARTED",
    [CONCURRENT_SESSION_EVENT_STATE_DISABLING_WAITING_STOP_ACKS] = "DISABLING_WAITING_STOP_ACKS",
    [CONCURRENT_SESSION_EVENT_STATE_CLONED_READ_ONLY] = "CLONED_READ_ONLY",
};

struct session_event {
    uint64_t id, state, n_sources;
    int64_t uid;
    struct slice name;
};

static struct session_event read_session(struct slice bytes)
{
    struct session_event e = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case CONCURRENT_SESSION_EVENT_STATE:
            e.state = pb_u64(&f);
            break;
        case CONCURRENT_SESSION_EVENT_SESSION_NAME:
            e.name = pb_bytes(&f);
            break;
        case CONCURRENT_SESSION_EVENT_SESSION_ID:
            e.id = pb_u64(&f);
            break;
        case CONCURRENT_SESSION_EVENT_CONSUMER_UID:
            e.uid = pb_i32(&f);
            break;
        case CONCURRENT_SESSION_EVENT_NUM_DATA_SOURCES:
            e.n_sources = pb_u32(&f);
            break;
        }
    }
    return e;
}

static void unknown_state(struct packet *p, uint64_t state)
{
    struct arg_list list = {0};
    struct args *args = &p->m->st->args;
    arg_list_int(args, &list, "state", (int64_t)state);
    import_log(p->m, STAT_concurrent_session_event_unknown_state, p->ts, p->byte_offset,
               args_intern(args, list.p, list.n));
    arg_list_free(&list);
}

/* The track of a session; its name is that of its first event. */
static uint32_t session_track(struct machine_ctx *m, const struct session_event *e)
{
    const char *suffix = e->state == CONCURRENT_SESSION_EVENT_STATE_CLONED_READ_ONLY ? " (clone)" : "";
    struct strpool *strings = &m->st->strings;
    int len = (int)(e->name.len < INT32_MAX ? e->name.len : INT32_MAX);
    struct track_dim dim = {"session_id", DIM_INT, (int64_t)e->id};
    struct track_spec spec = {.type = "concurrent_tracing_sessions",
                              .event_type = TRACK_STATE,
                              .name = len ? strpool_printf(strings, "%.*s%s", len, (const char *)e->name.p, suffix)
                                          : strpool_printf(strings, "Session %" PRIu64 "%s", e->id, suffix),
                              .parent = UINT32_MAX,
                              .dims = &dim,
                              .n_dims = 1};
    return track_intern(m->im->tracks, m->id, &spec);
}

void concurrent_session_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct session_event e = read_session(p->field);
    if (e.state >= sizeof states / sizeof *states || !states[e.state]) {
        unknown_state(p, e.state);
        return;
    }
    uint64_t *open = u64map_put(&m->system->session_states, e.id, NULL);
    if (!open) {
        m->im->failed = true;
        return;
    }
    struct storage *st = m->st;
    if (*open)
        ROW_SET(st, state, dur, *open - 1, saturating_sub(p->ts, ROW_GET(st, state, ts, (uint32_t)(*open - 1))));
    struct arg_list list = {0};
    arg_list_int(&st->args, &list, "consumer_uid", e.uid);
    arg_list_int(&st->args, &list, "num_data_sources", (int64_t)e.n_sources);
    bool last = e.state == CONCURRENT_SESSION_EVENT_STATE_DISABLED;
    uint32_t row = state_insert(st, &(struct state_row){.ts = p->ts,
                                                        .dur = last ? 0 : -1,
                                                        .track_id = session_track(m, &e),
                                                        .value = import_str(m->im, states[e.state]),
                                                        .arg_set_id = args_intern(&st->args, list.p, list.n)});
    arg_list_free(&list);
    *open = last ? 0 : row + 1;
}
