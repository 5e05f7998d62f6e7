/* Owns the limits of the recorder's own memory and time. */
#include "capture/probes/watchdog.h"

#include "capture/probes/proc_text.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { LOOKS = 2 }; /* a peak between two looks is no leak */

uint32_t watchdog_memory_mb(void)
{
    char text[128], *p = text;
    uint64_t size, resident, shared;
    if (text_read_once("/proc/self/statm", text, sizeof text) <= 0 || !text_u64(&p, &size) ||
        !text_u64(&p, &resident) || !text_u64(&p, &shared) || shared > resident)
        return 0;
    return (uint32_t)(((resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE)) >> 20);
}

static void on_look(uv_timer_t *timer)
{
    struct watchdog *w = timer->data;
    alarm(w->limits.stuck_s); /* its signal ends the process, unless we come by again */
    uint32_t mb = w->limits.memory_mb ? watchdog_memory_mb() : 0;
    w->over = mb > w->limits.memory_mb ? w->over + 1 : 0;
    if (w->over < LOOKS || w->tripped)
        return;
    fprintf(stderr,
            "traced_probes: %u MiB of memory in use, more than the %u allowed (--max-memory): all recording ends\n", mb,
            w->limits.memory_mb);
    w->tripped = true;
    uv_stop(timer->loop);
}

void watchdog_start(struct watchdog *w, uv_loop_t *loop, struct watchdog_limits limits)
{
    *w = (struct watchdog){.limits = limits};
    signal(SIGALRM, SIG_DFL); /* whoever started us may have ignored it */
    uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    uv_timer_start(&w->timer, on_look, 0, limits.period_ms);
    uv_unref((uv_handle_t *)&w->timer); /* watching keeps no loop alive */
}

void watchdog_stop(struct watchdog *w)
{
    alarm(0);
    uv_close((uv_handle_t *)&w->timer, NULL);
}
