/* JSON texts inside debug annotations, as args. */
#ifndef MERIDIAN_IMPORTER_TRACK_EVENT_JSON_ARGS_H
#define MERIDIAN_IMPORTER_TRACK_EVENT_JSON_ARGS_H

#include "importer/track_event/arg_writer.h"

/* Writes the values of a JSON text under the writer's key; a text that is not JSON is one arg of type json. */
void json_args_write(struct arg_writer *w, struct slice json);

#endif
