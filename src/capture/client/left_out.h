/* Says on standard error when a config records this machine only while others are connected. */
#ifndef MERIDIAN_CAPTURE_CLIENT_LEFT_OUT_H
#define MERIDIAN_CAPTURE_CLIENT_LEFT_OUT_H

#include "base/u64map.h"
#include "capture/ipc/client.h"
#include "schema/config.pb-c.h"

struct left_out {
    struct u64map ids; /* of machines that are connected and not recorded */
};

/* Asks the service who is there, unless the config names machines; the answer comes on the loop. */
void left_out_ask(struct left_out *l, struct ipc_client *client, const Mrd__TraceConfig *config);
void left_out_free(struct left_out *l);

#endif
