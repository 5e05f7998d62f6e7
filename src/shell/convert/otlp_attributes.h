/* Args as attributes of OTLP in JSON. */
#ifndef MERIDIAN_SHELL_CONVERT_OTLP_ATTRIBUTES_H
#define MERIDIAN_SHELL_CONVERT_OTLP_ATTRIBUTES_H

#include "base/json_writer.h"
#include "meridian/tp.h"

/* What a span that was one before says of itself in its args. */
enum otlp_own_key {
    OWN_MESSAGE,
    OWN_STATE,
    OWN_FLAGS,
    OWN_DROPPED_ATTRIBUTES,
    OWN_DROPPED_EVENTS,
    OWN_DROPPED_LINKS,
    OWN_VERSION,
    OWNS
};
struct otlp_own {
    char *text[OWNS];
    int64_t number[OWNS];
    bool has_thread; /* thread.id is among the attributes */
};

/* Elements of an array of attributes that is open. */
struct otlp_attributes {
    struct json_writer *w;
    struct otlp_own *own; /* takes what is not an attribute; may be NULL */
    char *array;          /* the attribute whose elements are being written; NULL: none */
    bool failed;          /* memory ran out */
};

/* The arg that a row is: its columns 1 to 5 are key, value_type, int_value, string_value, real_value. */
void otlp_put_arg(struct otlp_attributes *a, const struct tp_result *r);
void otlp_attributes_end(struct otlp_attributes *a);

void otlp_put_text(struct json_writer *w, const char *key, const char *text); /* NULL: nothing */
void otlp_put_int(struct json_writer *w, const char *key, int64_t v);
void otlp_own_free(struct otlp_own *own);

#endif
