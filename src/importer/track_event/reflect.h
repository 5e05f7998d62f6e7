/* Messages as args, by the names that a schema gives their fields. */
#ifndef MERIDIAN_IMPORTER_TRACK_EVENT_REFLECT_H
#define MERIDIAN_IMPORTER_TRACK_EVENT_REFLECT_H

#include "importer/track_event/arg_writer.h"
#include "importer/track_event/message_schema.h"
#include "wire/pb_cursor.h"

/* Called for each field that is not a message, at the key of its message: before it is written (true: it is not to be,
 * the hook has written what stands in its place), and after. */
typedef bool (*reflect_hook)(void *ctx, struct arg_writer *w, strid message, strid field, const struct pb_field *value,
                             bool before);

/* A field that is left out. */
struct reflect_part {
    strid message;
    uint32_t field;
};

struct reflect {
    struct schema *schema;
    const struct reflect_part *skip; /* may be NULL */
    size_t n_skip;
    bool defaults;     /* fields that are not set are written, too: what they are then, NULL for messages and lists */
    reflect_hook hook; /* may be NULL */
    void *hook_ctx;
};

/* Writes the fields of a message under the writer's key. Unknown fields are passed over. */
void reflect_message(const struct reflect *r, struct arg_writer *w, strid message, struct slice bytes);
/* Writes one field of a message of that type. */
void reflect_field(const struct reflect *r, struct arg_writer *w, strid message, const struct pb_field *f);

#endif
