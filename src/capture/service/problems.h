/* What could not be recorded in a session, and why: collected while it runs, told to its consumer, written into its
 * trace. */
#ifndef MERIDIAN_CAPTURE_SERVICE_PROBLEMS_H
#define MERIDIAN_CAPTURE_SERVICE_PROBLEMS_H

#include "base/slice.h"
#include "base/vec.h"
#include "wire/recording_problem.h"

#include <stdbool.h>

struct session;
struct instance;
struct service_producer;
struct batch;

struct stored_problem {
    struct pb_writer message; /* one RecordingProblem as field RECORDING_REPORT_PROBLEM */
    uint32_t machine_id;
    bool emitted; /* into the trace */
};

struct session_problems {
    VEC(struct stored_problem) list;
    VEC(uint8_t) sources; /* by index in the config: bits of SOURCE_… */
    bool concluded;
};

enum { SOURCE_TRIED = 1, SOURCE_STARTED = 2 };

/* A producer has got its part of a data source. */
void problems_instance_made(struct session *s, const struct instance *in);
/* It says that it began; `report` is the whole NotifyDataSourceStartedRequest, which may say that it did not. */
void problems_instance_started(struct session *s, const struct instance *in, struct slice report);
/* It is stopped, or its producer is gone, maybe before it said that it had begun. */
void problems_instance_ended(struct session *s, const struct instance *in, bool is_gone);
/* Tells the consumer how things are now, when it wants to know. */
void problems_announce(struct session *s);
/* At the session's end: what became of everything that was asked for. */
void problems_conclude(struct session *s);
/* RecordingReport, as `field`; nothing for a session that never started. */
void problems_put_report(const struct session *s, struct pb_writer *w, uint32_t field);
/* One packet for each problem that is not in the trace yet. */
void problems_emit(struct session *s, struct batch *b, struct pb_writer *w);
void problems_copy(struct session *to, const struct session *from);
void problems_free(struct session *s);

#endif
