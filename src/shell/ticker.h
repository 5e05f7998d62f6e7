/* Says on a terminal that something long still runs: after a second, and once a second from then on. */
#ifndef MERIDIAN_SHELL_TICKER_H
#define MERIDIAN_SHELL_TICKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero: it does not run. */
struct ticker {
    const char *what;
    bool writes;
    uint64_t written_before;
    int64_t start_ns;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool running, over;
    int width;     /* of the longest line that was shown */
    char said[64]; /* by ticker_say() */
};

/* A line "WHAT: 3 s, 12.5 MB written (Ctrl-C ends it)" on standard error while that is a terminal, by a thread of its
 * own that takes no signals. `writes`: a file is made, so that the bytes this program writes say how far it is. */
void ticker_start(struct ticker *t, const char *what, bool writes);

/* Puts a text behind the seconds, in the lines from now on. */
void ticker_say(struct ticker *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Do others show on the terminal what is written to `fd` (the terminal itself, a pager)? Then the line has to go first.
 */
bool ticker_shares(int fd);

/* Ends it and clears the line; before anything else is written to the terminal. Fine when it does not run, or NULL. */
void ticker_stop(struct ticker *t);

#endif
