/* Which queries a message refers to by their ids, however deep. */
#ifndef MERIDIAN_SUMMARY_RUN_QUERY_IDS_H
#define MERIDIAN_SUMMARY_RUN_QUERY_IDS_H

#include "base/vec.h"

#include <protobuf-c/protobuf-c.h>

/* Views of the message's texts; an id used twice stands there twice. */
struct query_ids {
    const char **p;
    size_t n, cap;
};

/* Appends the ids in `message`, a query or a message that holds queries. False: out of memory. */
bool query_ids_collect(const ProtobufCMessage *message, struct query_ids *out);

#endif
