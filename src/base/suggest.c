/* Guesses what a misspelt word was meant to be. */
#include "base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WORD = 40 };

/* Edits between two words: a letter more, less, another, or two that stand in the wrong order. */
static unsigned edits(const char *a, size_t n, const char *b, size_t m)
{
    unsigned char rows[3][MAX_WORD + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (unsigned char)j;
    for (size_t i = 1; i <= n; i++) {
        const unsigned char *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        unsigned char *row = rows[i % 3];
        row[0] = (unsigned char)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned other = tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]);
            unsigned least = above[j - 1] + other;
            least = above[j] + 1u < least ? above[j] + 1u : least;
            least = row[j - 1] + 1u < least ? row[j - 1] + 1u : least;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_above[j - 2] + 1u < least)
                least = two_above[j - 2] + 1u;
            row[j] = (unsigned char)least;
        }
    }
    return rows[n % 3][m];
}

struct suggestion suggest(const char *word, size_t len)
{
    return (struct suggestion){.word = word, .len = len};
}

void suggest_among(struct suggestion *s, const char *candidate)
{
    size_t m = strlen(candidate);
    if (s->len == 0 || s->len > MAX_WORD || m > MAX_WORD)
        return;
    unsigned far = s->len < 4 ? 1 : s->len < 8 ? 2 : 3; /* more is another word */
    unsigned d = edits(s->word, s->len, candidate, m);
    if (s->len >= 3 && m > s->len && strncmp(s->word, candidate, s->len) == 0)
        d = 1; /* its beginning */
    if (d > far || d >= m || (s->best && d >= s->distance))
        return;
    s->best = candidate;
    s->distance = d;
}

const char *suggest_text(const struct suggestion *s, const char *prefix, char *text, size_t room)
{
    text[0] = '\0';
    if (s->best)
        snprintf(text, room, " (did you mean '%s%s'?)", prefix, s->best);
    return text;
}

int suggest_refuse(struct error *err, const char *what, const char *word, const char *const *names, size_t n)
{
    struct suggestion s = suggest(word, strlen(word));
    char list[160] = "", text[80];
    for (size_t i = 0, at = 0; i < n && at < sizeof list; i++) {
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", names[i]);
        suggest_among(&s, names[i]);
    }
    return error_set(err, -MRD_EINVALID, "%s: '%.60s' is none of %s%s", what, word, list,
                     suggest_text(&s, "", text, sizeof text));
}
