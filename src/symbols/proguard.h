/* Reads the maps that ProGuard and R8 write (mapping.txt): what classes, fields and methods of an application were
 * called before it was built; and makes DeobfuscationMapping packets of them.
 *
 *     com.example.Main -> a.a:
 *         int count -> a
 *         4:9:void run(int):30:35 -> b
 *
 * Everything is a view of the text, which must outlive the map. */
#ifndef MERIDIAN_SYMBOLS_PROGUARD_H
#define MERIDIAN_SYMBOLS_PROGUARD_H

#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"
#include "wire/pb_writer.h"

#include <stdbool.h>

enum {
    PROGUARD_MAX_NAME = 4096,       /* bytes; what the importer takes */
    PROGUARD_MAX_PACKET = 250 << 20 /* bytes; names of methods are complete, so a packet is larger than its map */
};

struct proguard_lines {
    bool known;
    uint32_t first, last;
};

struct proguard_member {
    struct slice obfuscated, name;
    struct proguard_lines obfuscated_lines, source_lines; /* of methods */
    size_t line;                                          /* of the text, from 1 */
};

struct proguard_class {
    struct slice obfuscated, name;
    size_t line;
    size_t first_field, n_fields; /* sorted by short name, each once */
    size_t first_method, n_methods;
};

struct proguard_map {
    VEC(struct proguard_class)
    classes; /* sorted by short name, each once */
    VEC(struct proguard_member)
    fields;
    VEC(struct proguard_member)
    methods; /* in the order of the text */
};

/* One line of a map. */
enum proguard_line { PROGUARD_NOTHING, PROGUARD_CLASS, PROGUARD_FIELD, PROGUARD_METHOD, PROGUARD_BAD };

/* Reads one line without its end. PROGUARD_CLASS fills the names of `m`; PROGUARD_BAD sets *why. */
enum proguard_line proguard_line_parse(struct slice line, struct proguard_member *m, const char **why);

/* -MRD_EFORMAT with the line's number when the text is not a map. `m` need not be set, and is to be freed in any case.
 */
int proguard_parse(struct proguard_map *m, struct slice text, struct error *err);

/* Appends a packet, as the field of a trace that it is. -MRD_ELIMIT when it would become larger than a packet may be;
 * `w` then ends within it. */
int proguard_write(const struct proguard_map *m, struct slice package, struct pb_writer *w, struct error *err);

void proguard_free(struct proguard_map *m);

#endif
