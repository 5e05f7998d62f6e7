/* Writes log lines. */
#include "base/log.h"
#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

void log_line(const char *fmt, ...)
{
    char buf[1024];
    int64_t now = clock_now_ns(CLOCK_REALTIME);
    time_t second = now / NS_PER_S;
    struct tm tm;
    localtime_r(&second, &tm);
    int n = snprintf(buf, sizeof buf, "[%02d:%02d:%02d.%03d] ", tm.tm_hour, tm.tm_min, tm.tm_sec,
                     (int)(now % NS_PER_S / 1000000));
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
    int64_t second = clock_now_ns(CLOCK_MONOTONIC_COARSE) / NS_PER_S;
    if (second != l->second) {
        l->second = second;
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
