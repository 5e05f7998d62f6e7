/* The statements that PerfettoSQL adds to SQLite's, parsed from tokens. */
#ifndef MERIDIAN_SQL_DIALECT_PARSE_H
#define MERIDIAN_SQL_DIALECT_PARSE_H

#include "sql/frontend/text.h"

enum statement_kind {
    STATEMENT_BLANK,  /* nothing there */
    STATEMENT_SQLITE, /* for SQLite as it stands */
    STATEMENT_TABLE,
    STATEMENT_VIEW,
    STATEMENT_FUNCTION,
    STATEMENT_MACRO,
    STATEMENT_INDEX,
    STATEMENT_DROP_INDEX,
    STATEMENT_INCLUDE,
};

enum value_type { VALUE_BOOL, VALUE_LONG, VALUE_DOUBLE, VALUE_STRING, VALUE_BYTES, VALUE_ANY, VALUE_TYPE_COUNT };

/* The type of a name such as JOINID (any case), or -1. */
int value_type_find(const char *name, size_t len);
const char *value_type_name(enum value_type t);

struct parsed_field { /* a column or an argument: name and type */
    const struct sql_token *name;
    const struct sql_token *type;
    bool variadic; /* "TYPE..." */
};

struct parsed_fields {
    struct parsed_field *p;
    size_t n;
    size_t cap;
};

struct parsed {
    enum statement_kind kind;
    bool replace;
    bool has_columns;                /* a column list was given */
    bool returns_table;              /* functions */
    const struct sql_token *name;    /* of what is made */
    const struct sql_token *on;      /* INDEX: the table; functions: DELEGATES TO this, or NULL */
    const struct sql_token *returns; /* the type of a function or macro */
    struct parsed_fields args;       /* of functions and macros; names of an index's columns */
    struct parsed_fields columns;    /* of tables, views and table functions */
    const struct sql_token *body;    /* behind AS; INCLUDE: the module's path */
    size_t n_body;
};

struct parse_problem {
    const struct sql_token *token;
    char text[256];
};

/* Appends the tokens of the statement that begins at frame->source[from], without its `;` (a trigger's body is one
 * statement); *end is behind the `;`. False when out of memory. */
bool statement_scan(struct sql_tokens *out, struct sql_frame *frame, size_t from, size_t *end);

/* What kind of statement the tokens begin: enough to decide whether macros are expanded in it. */
enum statement_kind statement_classify(const struct sql_token *p, size_t n);

/* Parses p[0, n), which must outlive *out. 0, -MRD_ESQL with *problem, -MRD_ENOMEM. */
int statement_parse(const struct sql_token *p, size_t n, struct parsed *out, struct parse_problem *problem);
void parsed_free(struct parsed *p);

#endif
