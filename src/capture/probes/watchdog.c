/* The limits of the recorder's own memory and time. */
#include "capture/probes/watchdog.h"

#include "capture/probes/proc_text.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 2 }; /* a peak between two looks is not a leak */
enum { SLICES = 8 };

uint32_t watchdog_memory_mb(void)
{
    char text[128], *p = text;
    uint64_t size, resident, shared;
    if (text_read_once("/proc/self/statm", text, sizeof text) <= 0 || !text_u64(&p, &size) ||
        !text_u64(&p, &resident) || !text_u64(&p, &shared) || shared > resident)
        return 0;
    return (uint32_t)(((resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE)) >> 20);
}

/* A slice of the time went by without a turn of the loop. However long a process was stopped, or its machine suspended,
 * that is one signal when it goes on, and a turn of the loop comes before the next: only who runs and does not turn
 * gets them all. */
static void on_slice(int number, siginfo_t *info, void *unused)
{
    struct watchdog *w = info->si_value.sival_ptr;
    (void)unused;
    if (info->si_code != SI_TIMER || ++w->slices < SLICES)
        return;
    signal(number, SIG_DFL);
    raise(number); /* ends the process */
}

/* The time without a turn of the loop begins anew. */
static void restart_slices(struct watchdog *w)
{
    uint32_t ms = w->limits.stuck_ms / SLICES;
    struct timespec slice = {ms / 1000, (long)(ms % 1000) * 1000000};
    w->slices = 0;
    if (w->armed)
        timer_settime(w->slice, 0, &(struct itimerspec){slice, slice}, NULL);
}

static void on_look(uv_timer_t *timer)
{
    struct watchdog *w = timer->data;
    restart_slices(w);
    uint32_t mb = w->limits.memory_mb ? watchdog_memory_mb() : 0;
    w->over = mb > w->limits.memory_mb ? w->over + 1 : 0;
    if (w->over < LOOKS || w->tripped)
        return;
    fprintf(stderr,
            "traced_probes: %u MiB of memory in use, more than the %u allowed (--max-memory): recording stops\n", mb,
            w->limits.memory_mb);
    w->tripped = true;
    uv_stop(timer->loop);
}

void watchdog_start(struct watchdog *w, uv_loop_t *loop, struct watchdog_limits limits)
{
    *w = (struct watchdog){.limits = limits};
    struct sigaction action = {.sa_sigaction = on_slice, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM, .sigev_value = {.sival_ptr = w}};
    sigaction(SIGALRM, &action, NULL);
    w->armed = limits.stuck_ms && timer_create(CLOCK_MONOTONIC, &event, &w->slice) == 0;
    uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    uv_timer_start(&w->timer, on_look, 0, limits.period_ms);
    uv_unref((uv_handle_t *)&w->timer); /* watching keeps no loop alive */
}

void watchdog_stop(struct watchdog *w)
{
    if (w->armed)
        timer_delete(w->slice);
    w->armed = false;
    uv_close((uv_handle_t *)&w->timer, NULL);
}
