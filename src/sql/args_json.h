/* An args set as one JSON text: {"key": value, ...}, keys with dots and indices as objects and arrays. */
#ifndef MERIDIAN_SQL_ARGS_JSON_H
#define MERIDIAN_SQL_ARGS_JSON_H

#include "base/json_writer.h"
#include "storage/storage.h"

/* What a caller keeps from set to set, so that nothing is allocated for each. All zero to begin with. */
struct args_json {
    struct arg_list list;
    struct json_item *items;
    size_t n, cap;
};

/* Writes the set. 1: it was written; 0: it has no values, nothing was written; -MRD_ENOMEM. */
int args_json_put(struct args_json *j, const struct storage *st, argset set, struct json_writer *w);
void args_json_free(struct args_json *j);

#endif
