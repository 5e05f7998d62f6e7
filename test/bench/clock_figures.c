/* Prints the table of docs/clock-sync.md: errors of the linear and the constant clock model in simulated networks.
 *
 *   clock_figures              the table
 *   clock_figures FIRST END    runs with these seeds, everything at random: every second one with steps of time and
 * rate
 */
#include "clock_measure.h"

#include <stdio.h>
#include <stdlib.h>

enum { SEEDS = 20 };

static const struct scenario {
    const char *name;
    struct sim_options o;
} scenarios[] = {
#define S(n) INT64_C(1000000000) * (n)
    {"one rack: 50 µs round trip, 10 ppm, 10 min",
     {.machines = 4,
      .span_ns = S(600),
      .interval_ns = S(30),
      .base_delay_ns = 20000,
      .jitter_ns = 5000,
      .drift_ppb = 10000,
      .wander_ppb_s = 1,
      .offset_ns = S(1000000),
      .events = 100,
      .raw = true,
      .rounds_packet = 2}},
    {"the same, compared as our relay does",
     {.machines = 4,
      .span_ns = S(600),
      .base_delay_ns = 20000,
      .jitter_ns = 5000,
      .drift_ppb = 10000,
      .wander_ppb_s = 1,
      .offset_ns = S(1000000),
      .events = 100,
      .raw = true,
      .rounds_packet = 2}},
    {"the same for two hours",
     {.machines = 4,
      .span_ns = S(7200),
      .interval_ns = S(30),
      .base_delay_ns = 20000,
      .jitter_ns = 5000,
      .drift_ppb = 10000,
      .wander_ppb_s = 1,
      .offset_ns = S(1000000),
      .events = 100,
      .raw = true,
      .rounds_packet = 2}},
    {"200 ppm, drift wanders 8 ppb/s",
     {.machines = 4,
      .span_ns = S(600),
      .interval_ns = S(30),
      .base_delay_ns = 20000,
      .jitter_ns = 5000,
      .drift_ppb = 200000,
      .wander_ppb_s = 8,
      .offset_ns = S(1000000),
      .events = 100,
      .raw = true,
      .rounds_packet = 2}},
    {"a virtual machine's TCP: 1 ms, jitter 0.2 ms",
     {.machines = 4,
      .span_ns = S(600),
      .interval_ns = S(30),
      .base_delay_ns = 400000,
      .jitter_ns = 100000,
      .drift_ppb = 50000,
      .wander_ppb_s = 4,
      .offset_ns = S(1000000),
      .events = 100,
      .raw = true,
      .rounds_packet = 2}},
    {"asymmetric: 0.2 ms there, 50 µs back",
     {.machines = 4,
      .span_ns = S(600),
      .interval_ns = S(30),
      .base_delay_ns = 50000,
      .asymmetry_ns = 150000,
      .jitter_ns = 10000,
      .drift_ppb = 20000,
      .wander_ppb_s = 2,
      .offset_ns = S(1000000),
      .events = 100,
      .raw = true,
      .rounds_packet = 2}},
    {"40 % of exchanges lost, eight machines, a reboot",
     {.machines = 8,
      .span_ns = S(600),
      .interval_ns = S(30),
      .base_delay_ns = 50000,
      .jitter_ns = 20000,
      .drift_ppb = 100000,
      .wander_ppb_s = 5,
      .offset_ns = S(1000000),
      .loss_percent = 40,
      .reboot = true,
      .events = 100,
      .raw = true,
      .rounds_packet = 2}},
    {"the same, as our relay compares; the machine id stays",
     {.machines = 8,
      .span_ns = S(600),
      .base_delay_ns = 50000,
      .jitter_ns = 20000,
      .drift_ppb = 100000,
      .wander_ppb_s = 5,
      .offset_ns = S(1000000),
      .loss_percent = 40,
      .reboot = true,
      .same_id = true,
      .events = 100,
      .raw = true,
      .rounds_packet = 2}},
#undef S
};

static void add_runs(const struct scenario *s, enum import_clock_model model, struct figures *f, size_t *events)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_options o = s->o;
        struct simulation sim;
        o.seed = seed * 101 + 7;
        if (model == CLOCK_MODEL_COMPATIBLE) { /* as a service that writes five comparisons, once */
            o.rounds_packet = 5;
            o.once = true;
        }
        simulate(&sim, &o);
        measure(&sim, model, false, f);
        *events += sim.events.n;
        simulation_free(&sim);
    }
}

static double us(int64_t ns)
{
    return (double)ns / 1000;
}

/* Random runs: how many, and what went wrong in which. */
static int random_runs(uint64_t first, uint64_t end)
{
    struct figures all[2] = {0};
    unsigned bad = 0;
    for (uint64_t seed = first; seed < end; seed++) {
        bool disturbed = seed % 2;
        struct sim_options o = sim_random_options(seed, disturbed);
        struct simulation sim;
        struct figures f = {0};
        simulate(&sim, &o);
        measure(&sim, CLOCK_MODEL_LINEAR, false, &f);
        simulation_free(&sim);
        if (f.outside || f.unbound || f.missing || (!disturbed && f.inverted)) {
            printf(
                "seed %llu: %zu outside, %zu unbound, %zu missing, %zu inverted; interval %.0f s, pauses %u, jumps %u, "
                "rate steps %u, disciplined %d\n",
                (unsigned long long)seed, f.outside, f.unbound, f.missing, f.inverted, (double)o.interval_ns / 1e9,
                o.pauses, o.jumps, o.rate_steps, o.disciplined);
            bad++;
        }
        for (size_t i = 0; i < f.bounds.n; i++)
            vec_push(&all[disturbed].bounds, f.bounds.p[i]);
        all[disturbed].outside += f.outside;
        figures_free(&f);
    }
    for (int d = 0; d < 2; d++) {
        printf("%s: %zu events, %zu outside; bound: median %.1f µs, 90 %% %.1f µs, 99 %% %.0f µs\n",
               d ? "with steps" : "without steps", all[d].bounds.n, all[d].outside, us(bound_percentile(&all[d], 50)),
               us(bound_percentile(&all[d], 90)), us(bound_percentile(&all[d], 99)));
        figures_free(&all[d]);
    }
    printf("%u of %llu runs are wrong\n", bad, (unsigned long long)(end - first));
    return bad != 0;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return random_runs(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
    printf("| network | model | median error | 99 %% | worst | median bound | largest | outside bound | effects before "
           "causes |\n"
           "|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        for (int linear = 1; linear >= (scenarios[i].o.interval_ns == 0);
             linear--) { /* nobody has bursts and one offset */
            struct figures f = {0};
            size_t events = 0;
            add_runs(&scenarios[i], linear ? CLOCK_MODEL_LINEAR : CLOCK_MODEL_COMPATIBLE, &f, &events);
            printf("| %s | %s | %.1f µs | %.1f µs | %.1f µs | ", linear ? scenarios[i].name : "",
                   linear ? "linear" : "constant", us(error_percentile(&f, 50)), us(error_percentile(&f, 99)),
                   us(f.worst));
            if (linear)
                printf("%.1f µs | %.0f µs | %zu of %zu | %zu |\n", us(bound_percentile(&f, 50)), us(f.bound), f.outside,
                       f.errors.n, f.inverted);
            else
                printf("none | none | – | %zu of %zu |\n", f.inverted, events);
            figures_free(&f);
        }
    }
    return 0;
}
