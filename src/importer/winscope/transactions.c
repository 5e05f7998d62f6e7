/* Imports what clients asked SurfaceFlinger to change: transactions, with what they change of layers and displays. */
#include "importer/winscope/winscope_internal.h"

#include "base/hash.h"

struct flag {
    uint8_t bit;
    const char *name;
};
static const struct flag layer_flags[] = {
    {0, "ePositionChanged"},
    {1, "eLayerChanged"},
    {3, "eAlphaChanged"},
    {4, "eMatrixChanged"},
    {5, "eTransparentRegionChanged"},
    {6, "eFlagsChanged"},
    {7, "eLayerStackChanged"},
    {10, "eReleaseBufferListenerChanged"},
    {11, "eShadowRadiusChanged"},
    {11, "eShadowRadiusChanged"}, /* stands twice in the lists of others */
    {13, "eBufferCropChanged"},
    {14, "eRelativeLayerChanged"},
    {15, "eReparent"},
    {16, "eColorChanged"},
    {18, "eBufferTransformChanged"},
    {19, "eTransformToDisplayInverseChanged"},
    {20, "eCropChanged"},
    {21, "eBufferChanged"},
    {22, "eAcquireFenceChanged"},
    {23, "eDataspaceChanged"},
    {24, "eHdrMetadataChanged"},
    {25, "eSurfaceDamageRegionChanged"},
    {26, "eApiChanged"},
    {27, "eSidebandStreamChanged"},
    {28, "eColorTransformChanged"},
    {29, "eHasListenerCallbacksChanged"},
    {30, "eInputInfoChanged"},
    {31, "eCornerRadiusChanged"},
    {32, "eDestinationFrameChanged"},
    {33, "eCachedBufferChanged"},
    {34, "eBackgroundColorChanged"},
    {35, "eMetadataChanged"},
    {36, "eColorSpaceAgnosticChanged"},
    {37, "eFrameRateSelectionPriority"},
    {38, "eFrameRateChanged"},
    {39, "eBackgroundBlurRadiusChanged"},
    {40, "eProducerDisconnect"},
    {41, "eFixedTransformHintChanged"},
    {42, "eFrameNumberChanged"},
    {43, "eBlurRegionsChanged"},
    {44, "eAutoRefreshChanged"},
    {45, "eStretchChanged"},
    {46, "eTrustedOverlayChanged"},
    {47, "eDropInputModeChanged"},
    {48, "eClientDrawnCornerRadiusChanged"},
    {49, "eSystemContentPriorityChanged"},
    {50, "eBoxShadowSettingsChanged"},
    {51, "eBorderSettingsChanged"},
};
static const struct flag display_flags[] = {
    {0, "eSurfaceChanged"},     {1, "eLayerStackChanged"}, {2, "eDisplayProjectionChanged"},
    {3, "eDisplaySizeChanged"}, {4, "eFlagsChanged"},
};

struct change { /* a row on its way */
    struct packet *p;
    uint32_t snapshot;
    bool in_transaction;
    int64_t transaction_id, pid, uid;
    struct winscope_extra extra; /* what else the transaction says */
};

/* The set of the names of changed properties: one number for each `what`, of layers or of displays. */
static int64_t flags_of(struct packet *p, uint64_t what, const struct flag *flags, size_t n)
{
    struct winscope_machine *w = winscope_of(p);
    bool added = false;
    uint64_t *set = u64map_put(&w->flag_sets, hash_keyed(p->m->im->secret, what, flags == layer_flags), &added);
    if (!set) {
        p->m->im->failed = true;
        return COL_NULL;
    }
    if (!added)
        return (int64_t)*set;
    *set = w->flag_sets.n - 1;
    for (size_t i = 0; i < n; i++)
        if (what >> flags[i].bit & 1)
            surfaceflinger_transaction_flag_insert(
                p->m->st, &(struct surfaceflinger_transaction_flag_row){.flags_id = (int64_t)*set,
                                                                        .flag = import_str(p->m->im, flags[i].name)});
    return (int64_t)*set;
}

static struct surfaceflinger_transaction_row row_of(const struct change *k, const char *type)
{
    return (struct surfaceflinger_transaction_row){.snapshot_id = k->snapshot,
                                                   .base64_proto_id = COL_NULL,
                                                   .transaction_id = k->in_transaction ? k->transaction_id : COL_NULL,
                                                   .pid = k->in_transaction ? k->pid : COL_NULL,
                                                   .uid = k->in_transaction ? k->uid : COL_NULL,
                                                   .layer_id = COL_NULL,
                                                   .display_id = COL_NULL,
                                                   .flags_id = COL_NULL,
                                                   .transaction_type = import_str(k->p->m->im, type)};
}

static void set_args(struct surfaceflinger_transaction_row *row, argset set)
{
    row->arg_set_id = set;
    row->base64_proto_id = winscope_proto_id(set);
}

static void layer_changed(const struct change *k, struct slice bytes)
{
    struct surfaceflinger_transaction_row row = row_of(k, "LAYER_CHANGED");
    row.layer_id = (uint32_t)winscope_number(bytes, LAYER_STATE_LAYER_ID, 0);
    row.flags_id = flags_of(k->p, (uint64_t)winscope_number(bytes, LAYER_STATE_WHAT, 0), layer_flags,
                            sizeof layer_flags / sizeof *layer_flags);
    set_args(&row, winscope_args(k->p, WINSCOPE_LAYER_STATE, bytes, &k->extra));
    surfaceflinger_transaction_insert(k->p->m->st, &row);
}

static void display_changed(const struct change *k, struct slice bytes, const char *type)
{
    struct surfaceflinger_transaction_row row = row_of(k, type);
    row.display_id = (uint32_t)winscope_number(bytes, DISPLAY_STATE_ID, 0);
    row.flags_id = flags_of(k->p, (uint32_t)winscope_number(bytes, DISPLAY_STATE_WHAT, 0), display_flags,
                            sizeof display_flags / sizeof *display_flags);
    set_args(&row, winscope_args(k->p, WINSCOPE_DISPLAY_STATE, bytes, &k->extra));
    surfaceflinger_transaction_insert(k->p->m->st, &row);
}

static void transaction(struct change k, struct slice bytes)
{
    struct arg_list list = {0};
    struct pb_field f;
    bool any = false;
    k.in_transaction = true;
    k.transaction_id = winscope_number(bytes, TRANSACTION_STATE_TRANSACTION_ID, 0);
    k.pid = (uint32_t)winscope_number(bytes, TRANSACTION_STATE_PID, 0);
    k.uid = (uint32_t)winscope_number(bytes, TRANSACTION_STATE_UID, 0);
    if (pb_find(bytes, TRANSACTION_STATE_APPLY_TOKEN, &f) || pb_find(bytes, TRANSACTION_STATE_TRANSACTION_BARRIERS, &f))
        winscope_decode(k.p, WINSCOPE_TRANSACTION, bytes, &list);
    k.extra = winscope_keep_args(k.p, &list);
    arg_list_free(&list);
    struct pb_cursor c = pb_cursor(bytes);
    for (; pb_next(&c, &f); any |= f.id == TRANSACTION_STATE_LAYER_CHANGES)
        if (f.id == TRANSACTION_STATE_LAYER_CHANGES)
            layer_changed(&k, pb_bytes(&f));
    for (c = pb_cursor(bytes); pb_next(&c, &f); any |= f.id == TRANSACTION_STATE_DISPLAY_CHANGES)
        if (f.id == TRANSACTION_STATE_DISPLAY_CHANGES)
            display_changed(&k, pb_bytes(&f), "DISPLAY_CHANGED");
    if (!any) {
        struct surfaceflinger_transaction_row row = row_of(&k, "NOOP");
        surfaceflinger_transaction_insert(k.p->m->st, &row);
    }
}

/* Layers or displays that went, by number. */
static void removed(const struct change *k, struct slice bytes, uint32_t field, const char *type, bool is_layer)
{
    struct pb_numbers numbers = pb_numbers(bytes, field);
    for (uint64_t id; pb_next_number(&numbers, &id);) {
        struct surfaceflinger_transaction_row row = row_of(k, type);
        *(is_layer ? &row.layer_id : &row.display_id) = (uint32_t)id;
        surfaceflinger_transaction_insert(k->p->m->st, &row);
    }
}

void transactions_parse(struct packet *p)
{
    struct storage *st = p->m->st;
    argset set = winscope_args(p, WINSCOPE_TRANSACTIONS, p->field, NULL);
    struct change k = {.p = p};
    args_number_last(&st->args, set); /* as others do: behind what its parts hold */
    k.snapshot = surfaceflinger_transactions_insert(
        st, &(struct surfaceflinger_transactions_row){
                .ts = p->ts,
                .arg_set_id = set,
                .base64_proto_id = winscope_proto_id(set),
                .vsync_id = winscope_number(p->field, TRANSACTION_TRACE_ENTRY_VSYNC_ID, 0)});
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == TRANSACTION_TRACE_ENTRY_TRANSACTIONS)
            transaction(k, pb_bytes(&f));
    if (c.bad)
        stats_add(&st->stats, p->m->id, STAT_winscope_sf_transactions_parse_errors, 1);
    for (c = pb_cursor(p->field); pb_next(&c, &f);)
        if (f.id == TRANSACTION_TRACE_ENTRY_ADDED_LAYERS) {
            struct surfaceflinger_transaction_row row = row_of(&k, "LAYER_ADDED");
            row.layer_id = (uint32_t)winscope_number(pb_bytes(&f), LAYER_CREATION_ARGS_LAYER_ID, 0);
            set_args(&row, winscope_args(p, WINSCOPE_LAYER_CREATION, pb_bytes(&f), NULL));
            surfaceflinger_transaction_insert(st, &row);
        }
    removed(&k, p->field, TRANSACTION_TRACE_ENTRY_DESTROYED_LAYERS, "LAYER_DESTROYED", true);
    for (c = pb_cursor(p->field); pb_next(&c, &f);)
        if (f.id == TRANSACTION_TRACE_ENTRY_ADDED_DISPLAYS)
            display_changed(&k, pb_bytes(&f), "DISPLAY_ADDED");
    removed(&k, p->field, TRANSACTION_TRACE_ENTRY_REMOVED_DISPLAYS, "DISPLAY_REMOVED", false);
    removed(&k, p->field, TRANSACTION_TRACE_ENTRY_DESTROYED_LAYER_HANDLES, "LAYER_HANDLE_DESTROYED", true);
}
