/* The keywords of SQL, and which of them may be names.
 *
 *     enum sql_word w = sql_word_find("select", 6);      WORD_SELECT
 *     sql_word_kind(w);                                  WORD_RESERVED_ */
#ifndef MERIDIAN_SQL_FRONTEND_KEYWORDS_H
#define MERIDIAN_SQL_FRONTEND_KEYWORDS_H

#include <stddef.h>

enum sql_word {
    WORD_NONE, /* not a keyword */
#define WORD(name, kind) WORD_##name,
#include "sql/frontend/keywords.def"
#undef WORD
    WORD_COUNT
};

enum sql_word_kind { WORD_PLAIN, WORD_FALLBACK_, WORD_JOINING_, WORD_RESERVED_ };

/* The keyword that a word without quotes is, in any case. */
enum sql_word sql_word_find(const char *text, size_t len);
enum sql_word_kind sql_word_kind(enum sql_word w);
const char *sql_word_text(enum sql_word w); /* in upper case */

#endif
