/* Finds keywords: by their first letter, then one after the other. */
#include "sql/frontend/keywords.h"

#include <stdint.h>

static const struct {
    const char *text;
    uint8_t len, kind;
} words[WORD_COUNT] = {
#define WORD(name, kind) [WORD_##name] = {#name, sizeof #name - 1, WORD_##kind##_},
#include "sql/frontend/keywords.def"
#undef WORD
};

/* The first keyword of each letter; a letter that begins none has the first of the next. */
static const uint8_t first_of[27] = {
    WORD_ABORT,  WORD_BEFORE,    WORD_CASCADE, WORD_DATABASE, WORD_EACH,      WORD_FAIL,  WORD_GENERATED,
    WORD_HAVING, WORD_IF,        WORD_JOIN,    WORD_KEY,      WORD_LAST,      WORD_MATCH, WORD_NATURAL,
    WORD_OF,     WORD_PARTITION, WORD_QUERY,   WORD_RAISE,    WORD_SAVEPOINT, WORD_TABLE, WORD_UNBOUNDED,
    WORD_VACUUM, WORD_WHEN,      WORD_COUNT,   WORD_COUNT,    WORD_COUNT,     WORD_COUNT};

enum sql_word sql_word_find(const char *text, size_t len)
{
    unsigned letter = (unsigned)((unsigned char)text[0] | 32) - 'a';
    if (len < 2 || letter > 25)
        return WORD_NONE;
    for (unsigned w = first_of[letter]; w < first_of[letter + 1]; w++) {
        size_t i = 1;
        if (words[w].len != len)
            continue;
        while (i < len && (text[i] == words[w].text[i] || text[i] == (words[w].text[i] | 32)))
            i++;
        if (i == len)
            return (enum sql_word)w;
    }
    return WORD_NONE;
}

enum sql_word_kind sql_word_kind(enum sql_word w)
{
    return (enum sql_word_kind)words[w].kind;
}

const char *sql_word_text(enum sql_word w)
{
    return words[w].text ? words[w].text : "";
}
