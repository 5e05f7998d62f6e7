/* Says on a terminal that something long still runs. */
#include "shell/ticker.h"

#include "shell/shell.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, LINE_MAX_BYTES = 100 };

/* As the kernel counts them for this process; 0: it does not tell. */
static uint64_t bytes_written(void)
{
    FILE *io = fopen("/proc/self/io", "re");
    char line[LINE_MAX_BYTES];
    unsigned long long n = 0;
    while (io && fgets(line, sizeof line, io) && sscanf(line, "wchar: %llu", &n) != 1)
        ;
    if (io)
        fclose(io);
    return n;
}

/* One write: the line stays whole beside what others write. A terminal that is gone hinders nothing. */
static void put(const char *line, int len)
{
    if (len > 0 && write(STDERR_FILENO, line, (size_t)len) < 0)
        return;
}

static void show(struct ticker *t)
{
    char line[LINE_MAX_BYTES], written[40] = "";
    uint64_t bytes = t->writes ? bytes_written() - t->written_before : 0;
    if (bytes)
        snprintf(written, sizeof written, ", %.1f MB written", (double)bytes / 1e6);
    char text[LINE_MAX_BYTES];
    int len = snprintf(text, sizeof text, "%.30s: %lld s%s%s (Ctrl-C ends it)", t->what,
                       (long long)((shell_now_ns() - t->start_ns) / NS_PER_S), written, t->said);
    if (len > t->width)
        t->width = len;
    len = snprintf(line, sizeof line, "\r%-*s\r", t->width, text);
    put(line, len < (int)sizeof line ? len : 0);
}

static void *tick(void *ctx)
{
    struct ticker *t = ctx;
    pthread_mutex_lock(&t->lock);
    for (int64_t next = t->start_ns + NS_PER_S; !t->over;) {
        const struct timespec until = {.tv_sec = next / NS_PER_S, .tv_nsec = next % NS_PER_S};
        pthread_cond_timedwait(&t->changed, &t->lock, &until);
        if (t->over || shell_now_ns() < next)
            continue;
        show(t);
        next += NS_PER_S;
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static bool start_thread(struct ticker *t)
{
    pthread_condattr_t clock;
    sigset_t all, before;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&t->thread, NULL, tick, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        pthread_cond_destroy(&t->changed);
        pthread_mutex_destroy(&t->lock);
    }
    return started;
}

void ticker_start(struct ticker *t, const char *what, bool writes)
{
    *t = (struct ticker){.what = what, .writes = writes, .start_ns = shell_now_ns()};
    if (!isatty(STDERR_FILENO))
        return;
    t->written_before = writes ? bytes_written() : 0;
    t->running = start_thread(t);
}

void ticker_say(struct ticker *t, const char *fmt, ...)
{
    va_list ap;
    if (!t->running)
        return;
    va_start(ap, fmt);
    pthread_mutex_lock(&t->lock);
    vsnprintf(t->said, sizeof t->said, fmt, ap);
    pthread_mutex_unlock(&t->lock);
    va_end(ap);
}

bool ticker_shares(int fd)
{
    struct stat st;
    return fstat(fd, &st) != 0 || !S_ISREG(st.st_mode);
}

void ticker_stop(struct ticker *t)
{
    if (!t || !t->running)
        return;
    pthread_mutex_lock(&t->lock);
    t->over = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    t->running = false;
    char line[LINE_MAX_BYTES];
    if (t->width && t->width < LINE_MAX_BYTES - 2)
        put(line, snprintf(line, sizeof line, "\r%*s\r", t->width, ""));
}
