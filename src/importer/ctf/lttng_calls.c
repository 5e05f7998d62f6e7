/* System calls: slices of their thread, whose args are those of the entry and what the call returned.
 *
 * The args of a slice are made once, when the call returns: the bytes of the entry's fields and the result behind them.
 * They are decoded when a query asks. */
#include "importer/ctf/ctf_internal.h"

#include "importer/track/slice_tracker.h"

enum { RET };

void lttng_call_begin(const struct ctf_row *e)
{
    uint32_t row = slice_begin(e->m->im->slices, e->m->id, e->ts, e->track, 0, e->slice, e->args);
    struct ctf_call *call = ctf_call_of(e->import, e->utid);
    if (call)
        *call = (struct ctf_call){row == SLICE_NONE ? 0 : row + 1, e->use->id, e->payload};
}

/* The args of the entry with the result behind them; none when it is too long for that. */
static argset args_with(const struct ctf_row *e, const struct ctf_call *call, int64_t ret)
{
    enum { MOST = 512 };
    uint8_t bytes[MOST + sizeof ret];
    struct ctf_class_use *use = ctf_class_by_id(e->import, call->class_id);
    if (!use || !use->on_demand || !call->payload.p || call->payload.len > MOST)
        return ARGSET_NONE;
    memcpy(bytes, call->payload.p, call->payload.len);
    memcpy(bytes + call->payload.len, &ret, sizeof ret);
    return kept_args(ctf_kept_args(e->import), &use->call_sharing, CTF_CALL_ARGS_KIND, use->id,
                     slice_of(bytes, call->payload.len + sizeof ret), KEPT_ANYWHERE);
}

void lttng_call_end(const struct ctf_row *e)
{
    uint32_t row = slice_end(e->m->im->slices, e->m->id, e->ts, e->track, 0, e->slice, NULL);
    struct ctf_call *call = ctf_call_of(e->import, e->utid);
    int64_t ret;
    if (row == SLICE_NONE || !call || !ctf_row_int(e, RET, &ret))
        return;
    argset args = call->slice == row + 1 ? args_with(e, call, ret) : ARGSET_NONE;
    if (!argset_is_none(args)) {
        ROW_SET_ARGS(e->m->st, slice, arg_set_id, row, args);
        return;
    }
    struct arg_list list = {0};
    arg_list_int(&e->m->st->args, &list, "ret", ret);
    slice_add_args(e->m->im->slices, row, &list);
    arg_list_free(&list);
}

void lttng_decode_call(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    struct args *a = &ctf_importer(ctx)->st->args;
    int64_t ret;
    struct arg_list list = {0};
    if (bytes.len < sizeof ret)
        return;
    memcpy(&ret, bytes.p + bytes.len - sizeof ret, sizeof ret);
    ctf_decode_args(ctx, aux, slice_of(bytes.p, bytes.len - sizeof ret), out);
    arg_list_int(a, &list, "ret", ret);
    if (!arg_list_merge(out, &list))
        a->failed = true;
    arg_list_free(&list);
}
