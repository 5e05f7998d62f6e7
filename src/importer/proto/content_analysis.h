/* What the bytes of a trace are spent on (--analyze-trace-proto-content): the tables experimental_proto_path and
 * experimental_proto_content. */
#ifndef MERIDIAN_IMPORTER_PROTO_CONTENT_ANALYSIS_H
#define MERIDIAN_IMPORTER_PROTO_CONTENT_ANALYSIS_H

#include "importer/core/context.h"

struct content_analysis;

/* A field that the schema of traces does not have: an extension. */
struct content_field {
    strid name;
    strid type;    /* "int64", or the last part of a message's name */
    strid message; /* full name of a message; 0: not a message */
};

/* Finds an extension of a message (full name, "perfetto.protos.TrackEvent"); false when there is none. */
typedef bool (*content_extension_fn)(struct importer *im, strid message, uint32_t number, struct content_field *out);

/* The analysis of an import that asks for one, made on first use; NULL when it does not, or out of memory. */
struct content_analysis *content_analysis_of(struct importer *im);
void content_analysis_close(struct content_analysis *c);

void content_analysis_extensions(struct content_analysis *c, content_extension_fn extension);

/* A set of packets that are told apart: those of equal args. */
struct content_annotation {
    const char *keys[2]; /* NULL: no more */
    strid values[2];     /* 0: the arg is NULL */
};

/* Adds a packet to those of its annotation (NULL: none). */
void content_analysis_packet(struct content_analysis *c, struct slice packet, const struct content_annotation *a);

/* Fills the tables. */
void content_analysis_finish(struct content_analysis *c);

#endif
