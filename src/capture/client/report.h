/* What the recorder tells its user about a recording: what did not start, at the beginning; what was lost, at the end.
 *
 * Our service reports in a field of its own. Of other services it is asked which data sources producers offer, and
 * which of them were started. */
#ifndef MERIDIAN_CAPTURE_CLIENT_REPORT_H
#define MERIDIAN_CAPTURE_CLIENT_REPORT_H

#include "base/slice.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/ipc/client.h"
#include "schema/service.pb-c.h"
#include "wire/pb_writer.h"

#include <stdbool.h>

struct report {
    const Mrd__TraceConfig *config; /* borrowed; NULL: attached to a session of somebody else */
    bool short_form;                /* the config has data sources that nobody asked for */
    struct pb_writer latest;        /* RecordingReport */
    bool has_report;                /* the service sends reports */
    bool is_foreign;                /* it does not: what follows counts */
    struct u64map offered, started; /* hashes of names of data sources */
    struct u64map printed;          /* hashes of problems that were printed */
};

/* Asks a service of another make what it offers; `r` must live until the client is closed. */
void report_ask(struct report *r, struct ipc_client *client);
/* A RecordingReport has come: it replaces the one before. */
void report_take(struct report *r, struct slice message);
/* A data source instance changed its state. */
void report_instance(struct report *r, const Mrd__ObservableEvents__DataSourceInstanceStateChange *change);
/* Prints the problems that were not printed yet. */
void report_print(struct report *r);
/* Nothing of what was asked for has started, as far as the service told. */
bool report_nothing_started(const struct report *r);
/* Prints what the session's buffers have lost, from TraceStats. */
void report_losses(struct slice trace_stats, bool into_file);
void report_free(struct report *r);

#endif
