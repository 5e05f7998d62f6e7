/* Messages as args: a set keeps where the message is, and its fields are decoded when a query asks. */
#include "importer/track_event/reflect.h"
#include "importer/track_event/track_event.h"
#include "importer/winscope/winscope_internal.h"

enum { ARGS_KIND_WINSCOPE = ARGS_HAVE_DEFAULTS };

struct payload {
    const uint8_t *bytes;
    uint32_t len;
    uint32_t generation;
    uint32_t type; /* enum winscope_message */
    struct winscope_extra extra;
};

static const char *const type_names[] = {
#define X(name, text) "perfetto.protos." text,
    WINSCOPE_MESSAGES(X)
#undef X
};

strid winscope_interned(struct seq_generation *g, uint32_t interned, uint64_t iid)
{
    return interned_string(g, interned, iid, INTERNED_STRING_STR);
}

struct context {
    struct importer *im;
    struct seq_generation *g;
};

/* "class_name_iid" becomes "class_name" with the text; with a remark, beside the number, when that is not there. */
static bool resolve(void *ctx, struct arg_writer *w, strid message, strid field, const struct pb_field *value,
                    bool before)
{
    static const struct {
        const char *field;
        uint32_t interned;
    } strings[] = {{"package_name_iid", INTERNED_DATA_VIEWCAPTURE_PACKAGE_NAME},
                   {"window_name_iid", INTERNED_DATA_VIEWCAPTURE_WINDOW_NAME},
                   {"view_id_iid", INTERNED_DATA_VIEWCAPTURE_VIEW_ID},
                   {"class_name_iid", INTERNED_DATA_VIEWCAPTURE_CLASS_NAME},
                   {"content_description_iid", INTERNED_DATA_VIEWCAPTURE_CONTENT_DESCRIPTION},
                   {"text_iid", INTERNED_DATA_VIEWCAPTURE_TEXT}};
    struct context *c = ctx;
    struct slice name = strpool_view(w->args->strings, field);
    (void)message;
    for (size_t i = 0; before && i < sizeof strings / sizeof *strings; i++) {
        if (!slice_eq_str(name, strings[i].field))
            continue;
        strid text = winscope_interned(c->g, strings[i].interned, pb_u64(value));
        struct arg_mark m = arg_writer_push(w, name.p, name.len - 4); /* without "_iid" */
        arg_writer_add(w, ARG_STRING, text ? text : import_str(c->im, "STRING DE-INTERNING ERROR"));
        arg_writer_pop(w, m);
        return text != 0;
    }
    return false;
}

/* Parts that have rows of their own. */
enum { ANY_ROOT = -1 };
static const struct part {
    const char *message;
    uint32_t field;
    int root; /* only when the message that is decoded is of this type */
} parts[] = {{"perfetto.protos.LayersSnapshotProto", LAYERS_SNAPSHOT_PROTO_LAYERS, ANY_ROOT},
             {"perfetto.protos.ViewCapture", VIEW_CAPTURE_VIEWS, ANY_ROOT},
             {"perfetto.protos.WindowManagerServiceDumpProto", WINDOW_MANAGER_SERVICE_DUMP_PROTO_ROOT_WINDOW_CONTAINER,
              ANY_ROOT},
             {"perfetto.protos.WindowContainerProto", WINDOW_CONTAINER_PROTO_CHILDREN, ANY_ROOT},
#define OF_TRANSACTION(field)                                                                                          \
    {                                                                                                                  \
        "perfetto.protos.TransactionState", TRANSACTION_STATE_##field, WINSCOPE_TRANSACTION                            \
    }
             OF_TRANSACTION(PID),
             OF_TRANSACTION(UID),
             OF_TRANSACTION(VSYNC_ID),
             OF_TRANSACTION(INPUT_EVENT_ID),
             OF_TRANSACTION(POST_TIME),
             OF_TRANSACTION(TRANSACTION_ID),
             OF_TRANSACTION(LAYER_CHANGES),
             OF_TRANSACTION(DISPLAY_CHANGES),
             OF_TRANSACTION(MERGED_TRANSACTION_IDS)};
enum { N_PARTS = sizeof parts / sizeof *parts };

static void add_arg(struct importer *im, struct arg_list *out, const struct arg *a)
{
    arg_list_add(&im->st->args, out, a->flat_key, a->key, a->type, a->word);
}

static void decode_message(struct importer *im, struct context c, enum winscope_message type, struct slice bytes,
                           bool defaults, struct arg_list *out)
{
    struct schema *schema = track_event_schema(im);
    struct arg_list list = {0};
    struct arg_writer w;
    struct reflect_part skip[N_PARTS];
    size_t n_skip = 0;
    for (size_t i = 0; i < N_PARTS; i++)
        if (parts[i].root == ANY_ROOT || parts[i].root == (int)type)
            skip[n_skip++] = (struct reflect_part){import_str(im, parts[i].message), parts[i].field};
    struct reflect r = {
        .schema = schema, .hook = resolve, .hook_ctx = &c, .skip = skip, .n_skip = n_skip, .defaults = defaults};
    arg_writer_init(&w, &im->st->args, &list);
    reflect_message(&r, &w, import_str(im, type_names[type]), bytes);
    arg_writer_free(&w);
    for (size_t i = 0; i < list.n; i++)
        add_arg(im, out, &list.p[i]);
    arg_list_free(&list);
}

static void decode_fields(struct importer *im, struct slice bytes, bool defaults, struct arg_list *out)
{
    struct payload k;
    if (bytes.len != sizeof k)
        return;
    memcpy(&k, bytes.p, sizeof k);
    if (k.type >= WINSCOPE_N_MESSAGES || !schema_load(track_event_schema(im), SCHEMA_WINSCOPE))
        return;
    struct context c = {im, generation_at(im, k.generation)};
    decode_message(im, c, k.type, slice_of(k.bytes, k.len), defaults, out);
    for (uint32_t i = 0; !defaults && i < k.extra.n; i++) /* these are no fields of the message */
        add_arg(im, out, &k.extra.args[i]);
}

static void decode(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    (void)aux;
    decode_fields(ctx, bytes, false, out);
}

static void decode_with_defaults(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    (void)aux;
    decode_fields(ctx, bytes, true, out);
}

void winscope_args_open(struct importer *im)
{
    args_set_decoder(&im->st->args, ARGS_KIND_WINSCOPE, decode, im);
    args_set_decoder(&im->st->args, ARGS_WITH_DEFAULTS, decode_with_defaults, im);
}

/* A copy that stays until the end; NULL: out of memory. */
static const void *kept(struct packet *p, const void *bytes, size_t len)
{
    void *copy = len ? arena_alloc(&winscope_of(p)->arena, len) : NULL;
    p->m->im->failed |= len && !copy;
    return copy ? memcpy(copy, bytes, len) : NULL;
}

struct winscope_extra winscope_keep_args(struct packet *p, const struct arg_list *list)
{
    const struct arg *args = kept(p, list->p, list->n * sizeof *list->p);
    return (struct winscope_extra){args, args ? (uint32_t)list->n : 0};
}

argset winscope_args(struct packet *p, enum winscope_message type, struct slice bytes,
                     const struct winscope_extra *extra)
{
    struct importer *im = p->m->im;
    struct payload k;
    memset(&k, 0, sizeof k); /* padding too */
    k.bytes = !bytes.len || importer_bytes_stable(im, bytes.p) ? bytes.p : kept(p, bytes.p, bytes.len);
    k.len = (uint32_t)bytes.len;
    k.generation = p->gen->index;
    k.type = (uint32_t)type;
    if (extra) {
        k.extra.args = extra->args;
        k.extra.n = extra->n;
    }
    if (im->failed)
        return ARGSET_NONE;
    im->st->args.costly_bytes += bytes.len + k.extra.n;
    return args_intern_bytes(&im->st->args, ARGS_KIND_WINSCOPE, 0, slice_of(&k, sizeof k), false, false, NULL);
}

void winscope_decode(struct packet *p, enum winscope_message type, struct slice bytes, struct arg_list *out)
{
    struct importer *im = p->m->im;
    if (schema_load(track_event_schema(im), SCHEMA_WINSCOPE))
        decode_message(im, (struct context){im, p->gen}, type, bytes, false, out);
}
