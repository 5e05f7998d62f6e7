/* What packets of V8's code refer to: isolates, scripts and functions, interned on their sequence. */
#ifndef MERIDIAN_IMPORTER_PROFILING_V8_H
#define MERIDIAN_IMPORTER_PROFILING_V8_H

#include "importer/profiling/profiling_internal.h"

enum { V8_AREAS = 3 /* in front of V8's own code and behind it, and that code */ };

/* An instance of V8 in a process. */
struct v8_isolate {
    uint32_t row, upid;
    int64_t pid;
    bool has_code_range; /* else nothing of it is kept */
    uint32_t n_areas;
    struct v8_area {
        uint64_t start, end;
    } areas[V8_AREAS];
};

/* A function: its row, and what frames of its code are called. */
struct v8_function {
    uint32_t row;
    strid name, file;
    int64_t line; /* 0: not known */
};

/* Each returns NULL, or UINT32_MAX, for what nothing has defined (counted). */
const struct v8_isolate *v8_isolate_of(struct packet *p, uint64_t iid);
bool v8_function_of(struct packet *p, const struct v8_isolate *isolate, uint64_t iid, struct v8_function *function);
uint32_t v8_wasm_script_of(struct packet *p, const struct v8_isolate *isolate, uint64_t iid);

/* The text of a V8String. */
strid v8_string(struct importer *im, struct slice message);

#endif
