/* Places a file of another format than packets on the timeline. */
#include "importer/clock/file_clock.h"

#include "importer/clock/clock_graph.h"
#include "importer/core/metadata.h"

static bool same_clock(struct clock_id a, struct clock_id b)
{
    return a.id == b.id && a.sequence == b.sequence && a.machine == b.machine && a.file == b.file;
}

void file_clock_open(struct file_clock *c, struct importer *im, uint32_t id)
{
    uint32_t chosen = im->file_clocks[im->file_format];
    id = chosen ? chosen : id;
    *c = (struct file_clock){.im = im, .same = id == 0, .chosen = chosen != 0};
    if (!id)
        return;
    if (im->input.private_clock)
        id = CLOCK_ID_TRACE_FILE;
    c->clock = (struct clock_id){.id = id,
                                 .machine = im->input.base_machine,
                                 .file = id == CLOCK_ID_TRACE_FILE ? im->input.serial : im->input.clock_file};
    if (clock_graph_trace_clock_given(im->clocks))
        return;
    if (clock_graph_set_trace_clock(im->clocks, c->clock) == 0)
        metadata_int(im, NULL, METADATA_trace_time_clock_id, id);
}

/* Joins the clock to trace time at 0 when that is how files with a clock of their own are placed. */
static void relate(struct file_clock *c)
{
    struct clock_graph *g = c->im->clocks;
    struct clock_id trace = clock_graph_trace_clock(g);
    int64_t there;
    c->ready = true;
    if (same_clock(c->clock, trace) || clock_graph_convert(g, c->clock, 0, trace, &there) == 0 ||
        (c->clock.id != CLOCK_ID_TRACE_FILE && trace.id != CLOCK_ID_TRACE_FILE))
        return;
    struct clock_reading both[] = {{.clock = trace}, {.clock = c->clock}};
    clock_graph_own_domain(g, c->clock);
    clock_graph_write_rows(g, both, 2, clock_graph_add_snapshot(g, both, 2));
}

bool file_clock_convert(struct file_clock *c, int64_t ns, int64_t byte_offset, int64_t *ts)
{
    struct clock_graph *g = c->im->clocks;
    if (!c->ready)
        relate(c);
    c->same = same_clock(c->clock, clock_graph_trace_clock(g));
    if (clock_graph_to_trace_time(g, c->clock, ns, ts) == 0)
        return true;
    clock_graph_record_failure(g, c->clock, ns, byte_offset);
    return false;
}

void file_clock_anchor(struct file_clock *c, int64_t ns, uint32_t id, int64_t there)
{
    struct clock_graph *g = c->im->clocks;
    struct clock_id clock = {.id = id, .machine = c->im->input.base_machine, .file = c->im->input.clock_file};
    struct clock_reading both[] = {{.clock = c->clock, .value = ns}, {.clock = clock, .value = there}};
    int64_t known;
    if (!c->clock.id || same_clock(c->clock, clock) || clock_graph_convert(g, c->clock, ns, clock, &known) == 0)
        return;
    clock_graph_own_domain(g, c->clock);
    clock_graph_write_rows(g, both, 2, clock_graph_add_snapshot(g, both, 2));
    c->ready = false;
}
