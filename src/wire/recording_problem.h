/* Problems of a recording as a whole, as the service, its clients and traces write them: messages of our own in fields
 * that Perfetto passes over.
 *
 *   message RecordingProblem {            message RecordingReport {
 *     optional uint32 kind = 1;             repeated RecordingProblem problems = 1;
 *     optional uint32 source_index = 2;     repeated uint32 started_sources = 2;  // indices in the config
 *     optional string source = 3;           optional uint32 asked_sources = 3;    // how many the config has
 *     optional string producer = 4;       }
 *     optional uint32 machine_id = 5;
 *     optional string machine_name = 6;
 *     optional string reason = 7;
 *   } */
#ifndef MERIDIAN_WIRE_RECORDING_PROBLEM_H
#define MERIDIAN_WIRE_RECORDING_PROBLEM_H

#include "base/slice.h"
#include "wire/pb_writer.h"

#include <stddef.h>

enum recording_problem_kind {
#define RECORDING_PROBLEM(name, number, stat, text, cure) RECORDING_##name = number,
#include "wire/recording_problem.def"
#undef RECORDING_PROBLEM
};

enum {
    ENABLE_TRACING_RESPONSE_REPORT = 990, /* RecordingReport in EnableTracingResponse */
    OBSERVE_EVENTS_RESPONSE_REPORT = 990, /* … in ObserveEventsResponse */
    OBSERVE_RECORDING_REPORT = 1 << 20,   /* the type of event that asks for it */
    NOTIFY_STARTED_FAILURE = 990,         /* string in NotifyDataSourceStartedRequest: it could not start, why */
    NOTIFY_STARTED_INCOMPLETE = 991,      /* repeated string: what it cannot record */
    RECORDING_REPORT_PROBLEM = 1,
    RECORDING_REPORT_STARTED = 2,
    RECORDING_REPORT_ASKED = 3,
};

/* A RecordingProblem; texts are views. */
struct recording_problem {
    uint32_t kind;
    uint32_t source_index;
    struct slice source, producer;
    uint32_t machine_id; /* 0: the service's machine */
    struct slice machine_name;
    struct slice reason;
};

void recording_problem_put(struct pb_writer *w, uint32_t field, const struct recording_problem *p);
void recording_problem_read(struct recording_problem *p, struct slice message);

/* The sentence of the table with its blanks filled in. Control characters become '?': texts come from other processes.
 */
void recording_problem_text(const struct recording_problem *p, char *text, size_t size);
/* What to do. */
const char *recording_problem_cure(uint32_t kind);

#endif
