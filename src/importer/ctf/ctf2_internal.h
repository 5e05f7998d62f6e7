/* The parts of the CTF 2 metadata parser, shared between its files and nobody else. It is a front end to the same types
 * as TSDL: references are resolved by tsdl_resolve(). */
#ifndef MERIDIAN_IMPORTER_CTF_CTF2_INTERNAL_H
#define MERIDIAN_IMPORTER_CTF_CTF2_INTERNAL_H

#include "importer/ctf/tsdl_internal.h"

#include "base/json_reader.h"

enum ctf2_key {
#define KEY(NAME, text) CTF2_##NAME,
#include "importer/ctf/ctf2_keys.def"
#undef KEY
    CTF2_KEYS
};

/* An object: the JSON of each property's value; empty when it is not there. Others are passed over. */
struct ctf2_object {
    struct slice at[CTF2_KEYS];
};

/* `what` is the object in errors. False once failed. */
bool ctf2_read_object(struct tsdl_parser *p, struct slice json, const char *what, struct ctf2_object *o);

/* The values of properties. Absent: NULL, or `otherwise`; of another type: the parser fails. */
const char *ctf2_text(struct tsdl_parser *p, struct slice json); /* in the arena */
uint64_t ctf2_uint(struct tsdl_parser *p, struct slice json, uint64_t otherwise);
int64_t ctf2_int(struct tsdl_parser *p, struct slice json, int64_t otherwise);
/* A property that must be there. */
bool ctf2_need(struct tsdl_parser *p, const struct ctf2_object *o, enum ctf2_key key);

/* A number of any sign as 64 bits. */
bool ctf2_number(struct tsdl_parser *p, struct json_reader *r, int64_t *out);

/* A field class, or the name of one; NULL once failed. */
struct ctf_type *ctf2_field_class(struct tsdl_parser *p, struct slice json, int depth);
/* The same for an optional property, which must be a structure; NULL when it is not there. */
struct ctf_type *ctf2_structure(struct tsdl_parser *p, struct slice json);

#endif
