/* Ends a recorder that has got out of hand, before the machine that it watches suffers.
 *
 * Memory: looked at every few seconds; above the limit twice in a row, the recorder is told to end, while it still can
 * put tracefs back. A loop that does not turn any more can put nothing back: a signal ends the process, and the next
 * start finds its notes. Time in which the process was stopped, or the machine suspended, does not count. */
#ifndef MERIDIAN_CAPTURE_PROBES_WATCHDOG_H
#define MERIDIAN_CAPTURE_PROBES_WATCHDOG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <uv.h>

struct watchdog_limits {
    uint32_t memory_mb; /* see watchdog_memory_mb(); 0: any */
    uint32_t stuck_ms;  /* without a turn of the loop; 0: any */
    uint32_t period_ms; /* between looks */
};

struct watchdog {
    struct watchdog_limits limits;
    uv_timer_t timer;
    timer_t slice;
    bool armed;
    volatile sig_atomic_t slices; /* of limits.stuck_ms that went by without a turn of the loop */
    unsigned over;                /* looks in a row that found too much memory */
    bool tripped;                 /* the loop was stopped */
};

/* Starts watching; `w` stays where it is until the loop has closed it. When the memory is too much, a line goes to
 * standard error and the loop is stopped. */
void watchdog_start(struct watchdog *w, uv_loop_t *loop, struct watchdog_limits limits);
void watchdog_stop(struct watchdog *w);

/* Resident memory of this process in MiB, without what it shares (files that are mapped, the trace on its way to the
 * service); 0 when it cannot be told. */
uint32_t watchdog_memory_mb(void);

#endif
