/* Shows what loading is at, on one line that is written over: the step, how much of it is done, how fast, how long it
 * still takes. */
#include "shell/progress.h"

#include "shell/shell.h"

#include <stdio.h>
#include <string.h>

enum {
    LINE = 78,
    EVERY_NS = 100000000,      /* a line a tenth of a second is enough */
    LEFT_AFTER_NS = 300000000, /* of a step: before that nothing is known of its speed */
};

void progress_begin(struct progress *p, bool all)
{
    *p = (struct progress){.all = all, .told_ns = shell_now_ns()};
}

/* What the numbers of a step count, and how many of them a shown unit has. */
static const struct step {
    const char *name;
    const char *unit;
    const char *rate;
    double per_unit;
} steps[] = {
    {"reading", "MB", "MB/s", 1e6},
    {"sorting", "million events", "million/s", 1e6},
    {"spilling", "MB", "MB/s", 1e6},
};

static const struct step *step_named(const char *name)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(steps[i].name, name) == 0)
            return &steps[i];
    return NULL;
}

void progress_step(void *ctx, const char *step, uint64_t done, uint64_t total)
{
    struct progress *p = ctx;
    int64_t now = shell_now_ns();
    bool begins = !p->step || strcmp(p->step, step) != 0;
    if (begins) {
        p->step = step;
        p->step_ns = now;
    }
    if (!p->all && now - p->told_ns < EVERY_NS)
        return;
    p->told_ns = now;
    p->shown = true;
    const struct step *s = step_named(step);
    char text[LINE + 1];
    int n = snprintf(text, sizeof text, "Loading trace: %s", step);
    double seconds = (double)(now - p->step_ns) / 1e9;
    bool known = s && now - p->step_ns >= (p->all ? 1 : LEFT_AFTER_NS) && done;
    if (s && total)
        n += snprintf(text + n, sizeof text - (size_t)n, " %.2f of %.2f %s", (double)done / s->per_unit,
                      (double)total / s->per_unit, s->unit);
    else if (s)
        n += snprintf(text + n, sizeof text - (size_t)n, " %.2f %s", (double)done / s->per_unit, s->unit);
    if (known)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %.1f %s", (double)done / s->per_unit / seconds, s->rate);
    if (known && total >= done)
        snprintf(text + n, sizeof text - (size_t)n, ", %.0f s left", seconds / (double)done * (double)(total - done));
    fprintf(stderr, "\r%-*.*s\r", LINE, LINE, text);
}

void progress_end(struct progress *p)
{
    if (p->shown)
        fprintf(stderr, "\r%*s\r", LINE, "");
}
