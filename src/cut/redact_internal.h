/* What the parts of redaction share. */
#ifndef MERIDIAN_CUT_REDACT_INTERNAL_H
#define MERIDIAN_CUT_REDACT_INTERNAL_H

#include "base/strpool.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "cut/redact.h"

/* ---- redact_rules.c ---- */

enum redact_kind { /* bits: a string may be of several */
                   REDACT_NAME = 1,
                   REDACT_ARG = 2,
                   REDACT_COMMAND_LINE = 4,
                   REDACT_STRING = 8, /* any */
                   REDACT_TEXT = 16,  /* no pattern: a secret as it stands */
};

struct redact_rule {
    uint32_t kind;
    uint32_t line;
    struct slice pattern; /* within redact_rules.text */
    bool used;            /* it replaced something */
};

enum { REDACT_KEY_MAX = 1024 };

struct redact_rules {
    char *text;
    VEC(struct redact_rule) rules;
    uint8_t key[REDACT_KEY_MAX]; /* of the pseudonyms */
    size_t key_len;
};

int redact_rules_parse(struct redact_rules *r, const char *text, struct error *err);
void redact_rules_free(struct redact_rules *r);

/* `*` stands for any bytes, `?` for one. */
bool redact_matches(struct slice pattern, struct slice text);

/* ---- redact_search.c: finds many strings in one pass (Aho and Corasick) ---- */

enum { REDACT_SHORT = 4 }; /* shorter secrets are found as words only */

enum redact_where { REDACT_ANYWHERE, REDACT_WORD, REDACT_WHOLE };

struct redact_node {
    uint32_t parent, depth;
    uint32_t fail;   /* the longest other node that this one ends with */
    uint32_t next;   /* the next one of those with a secret; 0: none */
    uint32_t secret; /* index + 1; 0: none */
    uint8_t byte, where;
};

struct redact_search {
    VEC(struct redact_node) nodes; /* 0: the root */
    struct u64map edges;           /* node, byte -> node */
    bool begins[256];              /* bytes that a secret begins with */
    bool failed;                   /* out of memory */
};

/* A string added twice keeps the first secret, and the wider `where`. */
void redact_search_add(struct redact_search *s, struct slice text, uint32_t secret, enum redact_where where);
void redact_search_ready(struct redact_search *s);
void redact_search_free(struct redact_search *s);

struct redact_range {
    size_t from, to;
    uint32_t secret;
    bool merged; /* of secrets that overlap: not the text of `secret` alone */
};
struct redact_ranges {
    VEC(struct redact_range) ranges;
};

/* Whether a secret's bytes are in there at all. */
bool redact_search_any(const struct redact_search *s, struct slice text);

/* The parts of `text` to replace, in order and apart. `opaque`: the text is bytes of any meaning. False: out of memory.
 */
bool redact_search_all(const struct redact_search *s, struct slice text, bool opaque, struct redact_ranges *out);

#endif
