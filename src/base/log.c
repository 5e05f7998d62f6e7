/* Writes log lines. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

void log_line(const char *fmt, ...)
{
    char buf[1024];
    struct timespec ts;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &ts);
    localtime_r(&ts.tv_sec, &tm);
    int n =
        snprintf(buf, sizeof buf, "[%02d:%02d:%02d.%03ld] ", tm.tm_hour, tm.tm_min, tm.tm_sec, ts.tv_nsec / 1000000);
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(buf + n, sizeof buf - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (m < 0)
        return;
    n += m < (int)sizeof buf - n - 2 ? m : (int)sizeof buf - n - 2;
    for (int i = 0; i < n; i++)
        if ((unsigned char)buf[i] < 0x20 || buf[i] == 0x7f)
            buf[i] = '?';
    buf[n++] = '\n';
    (void)!write(STDERR_FILENO, buf, (size_t)n);
}

int log_allowed(struct log_limit *l, unsigned burst, unsigned *dropped)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    if (ts.tv_sec != l->second) {
        l->second = ts.tv_sec;
        l->used = 0;
    }
    if (l->used >= burst) {
        l->dropped++;
        return 0;
    }
    l->used++;
    *dropped = l->dropped;
    l->dropped = 0;
    return 1;
}
