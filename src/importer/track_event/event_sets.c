/* The sets of args that keep a track event's bytes: its args are decoded when a query asks, all of them or those of one
 * key. */
#include "importer/track_event/arg_writer.h"
#include "importer/track_event/track_event_internal.h"

enum {
    ARGS_KIND_TRACK_EVENT = 6,       /* payload: bytes of a TrackEvent; aux: generation */
    ARGS_KIND_TRACK_EVENT_MARKS = 7, /* payload: struct marked */
    SHARE_TRIAL = 1 << 16,
};

struct marked { /* an event's bytes and marks, in the arena of the args */
    const uint8_t *bytes;
    uint32_t len;
    uint32_t generation;
    struct track_event_marks marks;
};

static void append_marks(struct args *args, const struct track_event_marks *m, struct arg_list *list)
{
    char phase[2] = {m->phase, 0};
    if (m->utid != UTID_NONE)
        arg_list_uint(args, list, "legacy_event.passthrough_utid", m->utid);
    if (m->phase)
        arg_list_str(args, list, "legacy_event.phase", strpool_intern_str(args->strings, phase));
}

static void decode_event(struct importer *im, uint32_t generation, struct slice bytes,
                         const struct track_event_marks *marks, const struct track_event_wanted *only,
                         struct arg_list *out)
{
    struct arg_list list = {0}, *own = out->n ? &list : out; /* `out` may hold other sets: this one does not merge */
    track_event_append_args(im, generation_at(im, generation), bytes, marks, only, own);
    if (marks)
        append_marks(&im->st->args, marks, own);
    for (size_t i = 0; i < list.n; i++)
        arg_list_add(&im->st->args, out, list.p[i].flat_key, list.p[i].key, list.p[i].type, list.p[i].word);
    arg_list_free(&list);
}

static void decode_marked_event(struct importer *im, struct slice bytes, const struct track_event_wanted *only,
                                struct arg_list *out)
{
    struct marked m;
    if (bytes.len != sizeof m)
        return;
    memcpy(&m, bytes.p, sizeof m);
    decode_event(im, m.generation, slice_of(m.bytes, m.len), &m.marks, only, out);
}

static void decode(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    decode_event(ctx, aux, bytes, NULL, NULL, out);
}

static void decode_marked(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    (void)aux;
    decode_marked_event(ctx, bytes, NULL, out);
}

/* Keys of annotations begin with "debug." and the name; NULL for keys that may be cut. */
static const struct track_event_wanted *wanted_by(const struct importer *im, strid key, struct track_event_wanted *out)
{
    static const char debug[] = "debug.";
    struct slice text = strpool_view(&im->st->strings, key);
    *out = (struct track_event_wanted){.debug = text.len >= sizeof debug - 1 &&
                                                memcmp(text.p, debug, sizeof debug - 1) == 0};
    if (text.len >= ARG_KEY_MAX)
        return NULL;
    if (out->debug) {
        out->name = slice_of(text.p + sizeof debug - 1, 0);
        for (const uint8_t *end = text.p + text.len, *p = out->name.p; p < end && *p != '.' && *p != '['; p++)
            out->name.len++;
    }
    return out;
}

static void decode_key(void *ctx, uint32_t aux, struct slice bytes, strid key, struct arg_list *out)
{
    struct track_event_wanted only;
    decode_event(ctx, aux, bytes, NULL, wanted_by(ctx, key, &only), out);
}

static void decode_marked_key(void *ctx, uint32_t aux, struct slice bytes, strid key, struct arg_list *out)
{
    struct track_event_wanted only;
    (void)aux;
    decode_marked_event(ctx, bytes, wanted_by(ctx, key, &only), out);
}

void track_event_args_open(struct importer *im)
{
    args_set_decoder(&im->st->args, ARGS_KIND_TRACK_EVENT, decode, im);
    args_set_decoder(&im->st->args, ARGS_KIND_TRACK_EVENT_MARKS, decode_marked, im);
    args_set_key_decoder(&im->st->args, ARGS_KIND_TRACK_EVENT, decode_key);
    args_set_key_decoder(&im->st->args, ARGS_KIND_TRACK_EVENT_MARKS, decode_marked_key);
}

argset track_event_event_args(struct track_event_machine *t, struct seq_generation *g, struct slice event,
                              bool has_args, const struct track_event_marks *marks)
{
    struct importer *im = t->m->im;
    struct args *args = &im->st->args;
    bool marked = marks->utid != UTID_NONE || marks->phase || marks->has_source || marks->no_log;
    if (!has_args) {
        if (!marked)
            return ARGSET_NONE;
        t->args.n = 0;
        track_event_append_source(args, marks, &t->args);
        append_marks(args, marks, &t->args);
        return args_intern(args, t->args.p, t->args.n);
    }
    bool stable = importer_bytes_stable(im, event.p);
    if (!marked) {
        /* Look for equal payloads only while that finds some: the index costs as much as a set. */
        bool share = t->share_tried < SHARE_TRIAL || t->share_hit >= t->share_tried / 16;
        bool was_new;
        argset set = args_intern_bytes(args, ARGS_KIND_TRACK_EVENT, g->index, event, stable, share, &was_new);
        t->share_tried += share;
        t->share_hit += share && !was_new;
        return set;
    }
    struct marked m;
    memset(&m, 0, sizeof m); /* padding too: the bytes are compared and hashed */
    m = (struct marked){event.p, (uint32_t)event.len, g->index, *marks};
    if (!stable) {
        uint8_t *copy = arena_alloc_bytes(&t->arena, event.len);
        if (!copy) {
            im->failed = true;
            return ARGSET_NONE;
        }
        m.bytes = memcpy(copy, event.p, event.len);
    }
    return args_intern_bytes(args, ARGS_KIND_TRACK_EVENT_MARKS, 0, slice_of(&m, sizeof m), false, false, NULL);
}
