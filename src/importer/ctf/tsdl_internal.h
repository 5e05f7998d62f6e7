/* The parts of the TSDL parser, shared between its files and nobody else. */
#ifndef MERIDIAN_IMPORTER_CTF_TSDL_INTERNAL_H
#define MERIDIAN_IMPORTER_CTF_TSDL_INTERNAL_H

#include "importer/ctf/ctf_types.h"
#include "importer/ctf/tsdl_lexer.h"

#include <stdlib.h>

/* A named type: typedef and typealias by their words ("unsigned long"), struct, variant and enum tags by "struct name".
 */
struct tsdl_alias {
    const char *name;
    struct ctf_type *type;
};

struct tsdl_value {
    const char *text; /* numbers too, in decimal */
    uint64_t number;
    bool is_number;
    bool negative;
};

struct tsdl_parser {
    struct ctf_metadata *m;
    struct tsdl_lexer lex;
    struct error *err;
    int rc; /* the first failure; then nothing moves any more */
    uint64_t work;
    bool is_ctf2;
    VEC(struct tsdl_alias)
    aliases;
};

int tsdl_fail(struct tsdl_parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Counts steps that are not in proportion to the text; fails when they are more than any true metadata takes. */
void tsdl_work(struct tsdl_parser *p, uint64_t steps);
bool tsdl_take(struct tsdl_parser *p, int token);
bool tsdl_expect(struct tsdl_parser *p, int token);
bool tsdl_at_word(const struct tsdl_parser *p, const char *word);
bool tsdl_take_word(struct tsdl_parser *p, const char *word);
void *tsdl_alloc(struct tsdl_parser *p, size_t size);
const char *tsdl_path(struct tsdl_parser *p);
bool tsdl_number(struct tsdl_parser *p, uint64_t *value, bool *negative);
bool tsdl_attribute(struct tsdl_parser *p, const char **name, struct tsdl_value *v);

/* Sorts the event classes of each stream by id. */
void ctf_sort_events(struct ctf_metadata *m);

/* The stream class of an id, made if need be; NULL once failed. */
struct ctf_stream_class *ctf_stream_of(struct tsdl_parser *p, uint64_t id);

/* ctf_labels.c: copies the labels of a class. */
void ctf_keep_ranges(struct tsdl_parser *p, struct ctf_type *t, const struct ctf_range *ranges, size_t n);

/* tsdl_types.c */
struct ctf_type *ctf_new_type(struct tsdl_parser *p, enum ctf_kind kind, uint32_t align);
/* Fills depth, weight and min_bits once all parts are there; NULL once failed. */
struct ctf_type *ctf_measured(struct tsdl_parser *p, struct ctf_type *t);
bool ctf_valid_align(struct tsdl_parser *p, uint64_t align);
struct ctf_type *tsdl_type(struct tsdl_parser *p, int depth); /* NULL once failed */
void tsdl_typealias(struct tsdl_parser *p);
void tsdl_typedef(struct tsdl_parser *p);

/* ctf_roles.c: what the fields of the headers are for, by their names. */
void ctf_roles_by_name(struct ctf_metadata *m);

/* tsdl_resolve.c: finds what variant tags and sequence lengths refer to and gives those fields slots. */
void tsdl_resolve(struct tsdl_parser *p);
/* A type with fields of its own that refers to nothing yet; NULL once failed. */
struct ctf_type *tsdl_copy_type(struct tsdl_parser *p, const struct ctf_type *t);

#endif
