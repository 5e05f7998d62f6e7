/* Whether bytes are OTLP (OpenTelemetry), and how its messages are framed. */
#ifndef MERIDIAN_IMPORTER_INPUT_FORMAT_OTLP_H
#define MERIDIAN_IMPORTER_INPUT_FORMAT_OTLP_H

#include "importer/input/format.h"

enum otlp_framing {
    OTLP_NOT,
    OTLP_BARE,          /* one message to the end of the file */
    OTLP_BIG_ENDIAN_32, /* the number of bytes in front of each message, in 4 bytes */
    OTLP_VARINT,        /* … as a varint */
};

/* `head`: the first FORMAT_LOOKAHEAD bytes of a file, or all of it. */
enum otlp_framing otlp_framing_of(struct slice head);
bool is_otlp_json(struct slice head);

#endif
