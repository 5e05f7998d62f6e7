/* Reads a small JSON document into a tree in an arena. */
#ifndef MERIDIAN_IMPORTER_MERGE_JSON_H
#define MERIDIAN_IMPORTER_MERGE_JSON_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_INT, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_type type;
    const char *key;  /* within an object */
    const char *text; /* JSON_STRING, UTF-8, NUL-terminated; numbers as written */
    int64_t number;   /* JSON_INT and JSON_BOOL; saturated when `too_large` */
    bool too_large;
    struct json *first; /* of an array or object */
    struct json *next;  /* sibling */
};

/* The document, or NULL: err says where it is wrong. */
struct json *json_parse(struct arena *a, struct slice text, struct error *err);

/* A member of an object, the last one of that name; NULL when there is none or `j` is not an object. */
const struct json *json_get(const struct json *j, const char *key);

#endif
