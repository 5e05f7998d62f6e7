/* Finds machines that are connected and that a config leaves out. */
#include "capture/client/left_out.h"

#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <stdio.h>

static void on_state(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct left_out *l = ctx;
    struct pb_field state, producer, id;
    if (!success || !pb_find(reply, QUERY_SERVICE_STATE_RESPONSE_SERVICE_STATE, &state))
        return;
    for (struct pb_cursor c = pb_sub(&state); pb_next(&c, &producer);)
        if (producer.id == TRACING_SERVICE_STATE_PRODUCERS &&
            pb_find(pb_bytes(&producer), TRACING_SERVICE_STATE_PRODUCER_MACHINE_ID, &id) && id.u)
            u64map_set(&l->ids, pb_u64(&id), 1);
    if (!has_more && l->ids.n)
        fprintf(stderr,
                "perfetto: %zu other machine%s connected but not recorded: add \"trace_all_machines: true\" to the "
                "config\n",
                l->ids.n, l->ids.n == 1 ? " is" : "s are");
}

static bool host_only(const Mrd__TraceConfig *c)
{
    for (size_t i = 0; i < c->n_data_sources; i++)
        if (c->data_sources[i]->n_machine_name_filter)
            return false;
    return c->n_data_sources && !c->trace_all_machines;
}

void left_out_ask(struct left_out *l, struct ipc_client *client, const Mrd__TraceConfig *config)
{
    if (host_only(config)) /* a service that cannot be asked knows of no other machines either */
        ipc_client_invoke(client, CONSUMER_QUERY_SERVICE_STATE, slice_of(NULL, 0), -1, on_state, l);
}

void left_out_free(struct left_out *l)
{
    u64map_free(&l->ids);
}
