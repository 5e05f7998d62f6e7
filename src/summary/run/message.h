/* Messages as bytes: to write them, and to tell whether two say the same. */
#ifndef MERIDIAN_SUMMARY_RUN_MESSAGE_H
#define MERIDIAN_SUMMARY_RUN_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* The wire bytes, for mem_free(). False: out of memory. */
bool message_pack(const ProtobufCMessage *m, uint8_t **bytes, size_t *n);

/* False: out of memory. */
bool message_compare(const ProtobufCMessage *a, const ProtobufCMessage *b, bool *same);

#endif
