/* The methods of TraceProcessorRpc about summaries and metrics: each writes the fields of its result. */
#ifndef MERIDIAN_SERVER_RPC_SUMMARY_H
#define MERIDIAN_SERVER_RPC_SUMMARY_H

#include "base/slice.h"

struct pb_writer;
struct session;
struct worker;

void rpc_metric(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
void rpc_metric_descriptors(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
void rpc_summary(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
void rpc_summarizer_create(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
void rpc_summarizer_update(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
void rpc_summarizer_query(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);
void rpc_summarizer_destroy(struct worker *w, struct session *s, struct slice args, struct pb_writer *out);

#endif
