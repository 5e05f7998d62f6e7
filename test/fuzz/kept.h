/* For targets that keep an engine over a recording from input to input, because opening one takes longer than most
 * inputs. */
#ifndef MERIDIAN_TEST_FUZZ_KEPT_H
#define MERIDIAN_TEST_FUZZ_KEPT_H

#include "meridian/tp.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>

#include "fuzz.h"

static struct tp *kept;
static struct tp **kept_running = &kept; /* where statements run */

static inline void kept_on_time(int signal_number)
{
    (void)signal_number;
    if (*kept_running)
        tp_interrupt(*kept_running);
}

/* Statements may count for ever: what runs is interrupted after so much CPU time, and again; 0: no more. (libFuzzer
 * itself uses the other timer.) */
static inline void kept_limit_ms(int ms)
{
    struct timeval t = {.tv_usec = ms * 1000L};
    setitimer(ITIMER_PROF, &(struct itimerval){.it_interval = t, .it_value = t}, NULL);
}

/* To be called first. What an engine keeps of an input looks like a leak to libFuzzer: it let all memory be searched up
 * to a thousand times, four fifths of the time of such a target. At the end it is searched all the same. */
static inline void kept_begin(int *argc, char ***argv)
{
    static char **volatile longer; /* lasts as long as the program, and a leak checker sees it */
    longer = calloc((size_t)*argc + 2, sizeof *longer);
    if (!longer)
        exit(2);
    memcpy(longer, *argv, (size_t)*argc * sizeof *longer);
    static char flag[] = "-detect_leaks=0";
    longer[(*argc)++] = flag;
    *argv = longer;
    sigaction(SIGPROF, &(struct sigaction){.sa_handler = kept_on_time, .sa_flags = SA_RESTART}, NULL);
}

static inline void kept_close(void)
{
    tp_close(kept);
}

static inline void kept_load(void)
{
    if (tp_open(&kept, NULL) != 0 || tp_load(kept, MERIDIAN_SOURCE_DIR "/test/data/track-events.pftrace") != 0 ||
        tp_finish(kept) != 0) {
        fprintf(stderr, "%s\n", tp_error(kept));
        exit(1);
    }
    atexit(kept_close);
}

/* Does the text have one of these words, or what begins with it? */
static inline bool kept_has_word(const uint8_t *text, size_t size, const char *const words[], size_t n_words)
{
    for (size_t i = 0; i < size; i++)
        for (size_t w = 0; w < n_words; w++)
            if ((text[i] | 32) == words[w][0] && size - i >= strlen(words[w]) &&
                strncasecmp((const char *)text + i, words[w], strlen(words[w])) == 0)
                return true;
    return false;
}

/* Does a text of SQL perhaps change what the next input finds? */
static inline bool kept_changes(const uint8_t *text, size_t size)
{
    static const char *const words[] = {"creat", "drop",  "alter", "insert", "updat", "delet",  "repla",
                                        "begin", "savep", "inclu", "impor",  "memoi", "pragma", "attac"};
    return kept_has_word(text, size, words, sizeof words / sizeof *words);
}

/* … even when it has failed? Other statements are done as a whole or not at all. */
static inline bool kept_half_changes(const uint8_t *text, size_t size)
{
    static const char *const words[] = {"inclu", "impor", "memoi"};
    return kept_has_word(text, size, words, sizeof words / sizeof *words);
}

#endif
