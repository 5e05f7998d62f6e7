/* Bracketed paste: what stands between ESC [ 200 ~ and ESC [ 201 ~. */
#include "shell/repl/paste.h"

#include "shell/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char begin[] = "\033[200~", end[] = "\033[201~";
enum { MARK = sizeof begin - 1, REST_MS = 30 }; /* the rest of a sequence comes at once */

void paste_ask(bool on)
{
    fputs(on ? "\033[?2004h" : "\033[?2004l", stdout);
    fflush(stdout);
}

static int read_byte(struct paste *p, const sigset_t *signals, char *byte)
{
    if (!interrupt_wait(p->fd, signals)) {
        errno = EINTR;
        return -1;
    }
    ssize_t n = read(p->fd, byte, 1);
    return n > 0 ? 1 : (int)n;
}

/* An ESC has come: is it the mark? If not, what was read of it waits in the queue. */
static bool take_mark(struct paste *p, const char *mark)
{
    struct pollfd f = {.fd = p->fd, .events = POLLIN};
    p->queue[0] = mark[0];
    p->n = 1;
    p->at = 0;
    while (p->n < MARK && memcmp(p->queue, mark, p->n) == 0 && poll(&f, 1, REST_MS) > 0 &&
           read(p->fd, p->queue + p->n, 1) == 1)
        p->n++;
    if (p->n < MARK || memcmp(p->queue, mark, MARK) != 0)
        return false;
    p->n = 0;
    return true;
}

int paste_read(struct paste *p, const sigset_t *signals, char *byte)
{
    for (;;) {
        if (p->at < p->n) {
            *byte = p->queue[p->at++];
            if (p->inside) /* an escape sequence within a text */
                continue;
            return 1;
        }
        int rc = read_byte(p, signals, byte);
        if (rc != 1)
            return rc;
        if (*byte == '\033' && take_mark(p, p->inside ? end : begin)) {
            p->inside = !p->inside;
            continue;
        }
        if (*byte == '\033')
            continue; /* to the queue */
        if (!p->inside) {
            p->line = false;
            return 1;
        }
        if (*byte == '\r')
            *byte = '\n';
        if (*byte == '\t')
            *byte = ' ';
        p->line = *byte == '\n';
        if (p->line || (unsigned char)*byte >= ' ')
            return 1;
    }
}
