/* What the versions of method traces of Android's runtime share: methods, threads, and records that become slices. */
#ifndef MERIDIAN_IMPORTER_TEXT_ART_METHOD_H
#define MERIDIAN_IMPORTER_TEXT_ART_METHOD_H

#include "base/u64map.h"
#include "base/vec.h"
#include "importer/clock/file_clock.h"
#include "importer/core/context.h"

#define ART_CLOCK_TEXT "ART method trace: only clocks 'wall' and 'dual' have a place in time"

struct art_method {
    strid name;
    argset args;
};

struct art {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock clock;
    uint32_t queue;
    bool dual;           /* records have both clocks */
    struct u64map by_id; /* method -> index of `methods` */
    VEC(struct art_method)
    methods;
};

/* For a format_reader. */
void *art_open(struct importer *im);
void art_close(void *self);

/* The bytes up to the next tab, taken off the line with it. */
struct slice art_field(struct slice *line);

/* A number of `n` bytes, the lowest first. */
uint64_t art_little(const uint8_t *p, size_t n);

/* Class, method, signature, file, line, parted by tabs; the last two may be missing. With the line, the file lies
 * beside the class. False when a part is too long. */
bool art_read_method(struct art *a, uint64_t id, struct slice line);
void art_name_thread(struct art *a, int64_t tid, struct slice name);

/* An entry or an exit at a time of the file. `method`: its id, with the action in the two lowest bits (0: an entry). */
void art_push(struct art *a, int64_t ns, uint32_t tid, uint64_t method);

/* The error of a file that ends too early. */
int art_cut_off(struct error *err);

#endif
