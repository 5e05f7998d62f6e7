/* Owns packets that mark a moment of the recording: triggers, the state of the display and of the viewer. */
#include "importer/system/system_internal.h"

uint32_t system_trigger_track(struct machine_ctx *m)
{
    struct track_spec spec = {.type = "triggers",
                              .event_type = TRACK_SLICE,
                              .name = import_str(m->im, "Trace Triggers"),
                              .parent = UINT32_MAX};
    return track_intern(m->im->tracks, m->id, &spec);
}

static void add_trigger(struct packet *p)
{
    struct machine_ctx *m = p->m;
    strid name = 0;
    struct arg_list args = {0};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == 1)
            name = import_slice(m->im, pb_bytes(&f));
        else if (f.id == 2)
            arg_list_str(&m->st->args, &args, "producer_name", import_slice(m->im, pb_bytes(&f)));
        else if (f.id == 3)
            arg_list_int(&m->st->args, &args, "trusted_producer_uid", pb_i32(&f));
    }
    slice_scoped(m->im->slices, m->id, p->ts, system_trigger_track(m), 0, name, 0,
                 args_intern(&m->st->args, args.p, args.n));
    arg_list_free(&args);
}

static void set_trigger(struct packet *p)
{
    struct pb_field f;
    if (pb_find(p->field, 1, &f))
        metadata_str(p->m->im, p->m, METADATA_trace_trigger, import_slice(p->m->im, pb_bytes(&f)));
}

void trigger_parse(struct packet *p)
{
    add_trigger(p);
    /* The first trigger of the recording is the one that matters, unless a clone names its own. */
    if (!p->m->system->trigger_seen)
        set_trigger(p);
    p->m->system->trigger_seen = true;
}

void clone_snapshot_trigger_parse(struct packet *p)
{
    add_trigger(p);
    set_trigger(p);
    p->m->system->trigger_seen = true;
}

void display_state_parse(struct packet *p)
{
    struct pb_field f;
    struct machine_ctx *m = p->m;
    if (!pb_find(p->field, 1, &f))
        return;
    uint32_t track = system_counter_track(m, "screen_state", import_str(m->im, "ScreenState"), NULL, NULL, 0);
    counter_push(m->im, p->ts, track, (double)pb_i32(&f));
}

enum tokenize_result ui_state_tokenize(struct packet *p)
{
    /* Kept as base64 of its bytes, as the viewer wants it back. */
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = p->field.len;
    if (n > 1 << 20)
        return TOKENIZE_DONE;
    char *text = mem_alloc((n + 2) / 3 * 4 + 1);
    if (!text) {
        p->m->im->failed = true;
        return TOKENIZE_DONE;
    }
    size_t out = 0;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p->field.p[i] << 16 | (i + 1 < n ? (uint32_t)p->field.p[i + 1] << 8 : 0) |
                     (i + 2 < n ? p->field.p[i + 2] : 0);
        text[out++] = digits[v >> 18];
        text[out++] = digits[v >> 12 & 63];
        text[out++] = i + 1 < n ? digits[v >> 6 & 63] : '=';
        text[out++] = i + 2 < n ? digits[v & 63] : '=';
    }
    metadata_str(p->m->im, p->m, METADATA_ui_state, strpool_intern(&p->m->st->strings, text, out));
    mem_free(text);
    return TOKENIZE_DONE;
}
