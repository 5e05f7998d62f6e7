/* Compares an import with the simulation it came from. */
#include "clock_measure.h"

#include "importer/clock/remote_sync.h"
#include "importer/core/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Whether clocks were compared after the event: before that its order is not promised. */
static bool compared(const struct simulation *s, const struct sim_event *e)
{
    return !e->machine || e->at < s->m[e->machine].last;
}

/* Imports the simulation's trace and compares every event with the truth. */
void measure(const struct simulation *s, enum import_clock_model model, bool by_pipe, struct figures *f)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    struct import_options options = {.clock_model = model, .full_sort = true};
    must(storage_init(&st) == 0);
    must(importer_open(&im, &st, &options, &err) == 0);
    struct slice trace = pb_written(&s->trace);
    char path[] = "/tmp/meridian-sim-XXXXXX";
    if (by_pipe) {
        must(importer_feed(im, trace.p, trace.len, &err) == 0);
    } else {
        int fd = mkstemp(path);
        FILE *out = fdopen(fd, "wb");
        must(fwrite(trace.p, 1, trace.len, out) == trace.len);
        fclose(out);
        must(importer_add_file(im, path, &err) == 0);
        remove(path);
    }
    must(importer_finish(im, &err) == 0);
    int64_t *ts = malloc(s->events.n * sizeof *ts + 1);
    uint32_t *machine = calloc(s->events.n + 1, sizeof *machine);
    for (size_t i = 0; i < s->events.n; i++)
        ts[i] = INT64_MIN;
    for (uint32_t row = 0; row < st.t[T_slice].n_rows; row++) {
        size_t i = strtoul(strpool_cstr(&st.strings, (strid)ROW_GET(&st, slice, name, row)), NULL, 10);
        ts[i] = ROW_GET(&st, slice, ts, row);
        machine[i] = (uint32_t)ROW_GET(&st, track, machine_id, (uint32_t)ROW_GET(&st, slice, track_id, row));
    }
    for (size_t i = 0; i < s->events.n; i++) {
        const struct sim_event *e = &s->events.p[i];
        if (ts[i] == INT64_MIN) {
            f->missing++;
            continue;
        }
        f->inverted += e->cause >= 0 && ts[i] < ts[e->cause] && compared(s, e) && compared(s, &s->events.p[e->cause]);
        int64_t error = llabs(ts[i] - e->true_host), bound;
        if (!e->machine)
            continue;
        if (!remote_sync_error(im->remote, machine[i], ts[i], &bound)) {
            f->unbound++;
        } else {
            f->outside += error > bound;
            vec_push(&f->bounds, bound);
            f->bound = bound > f->bound ? bound : f->bound;
        }
        vec_push(&f->errors, error);
        f->worst = error > f->worst ? error : f->worst;
    }
    free(ts);
    free(machine);
    importer_close(im);
    storage_free(&st);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

#define PERCENTILE(vec, percent)                                                                                       \
    ((vec)->n ? (qsort((vec)->p, (vec)->n, sizeof *(vec)->p, by_value), (vec)->p[((vec)->n - 1) * (percent) / 100]) : 0)

int64_t error_percentile(struct figures *f, unsigned percent)
{
    return PERCENTILE(&f->errors, percent);
}

int64_t bound_percentile(struct figures *f, unsigned percent)
{
    return PERCENTILE(&f->bounds, percent);
}

void figures_free(struct figures *f)
{
    vec_free(&f->errors);
    vec_free(&f->bounds);
}
