/* Writes traces of several machines whose true clocks are known.
 *
 * True time runs in ns. Each machine's BOOTTIME is offset + the integral of 1 + drift; drift wanders, steps, and is
 * slewed; the time steps; a machine that is paused (with its clock) does nothing. Machine 0 is the host. Relays compare
 * clocks at intervals over a network with asymmetric, jittery delays that also loses exchanges; a machine may reboot
 * (its clock starts anew). Each event is a trigger packet whose name is its number, so that it can be found again in
 * `slice`. */
#ifndef MERIDIAN_TEST_UNIT_CLOCK_SIMULATOR_H
#define MERIDIAN_TEST_UNIT_CLOCK_SIMULATOR_H

#include "base/vec.h"
#include "wire/pb_writer.h"

#define SIM_SECOND INT64_C(1000000000)

enum {
    SIM_MAX_MACHINES = 8,
    SIM_MAX_BENDS = 64,
    SIM_MAX_PAUSES = 8,
    SIM_STEP_NS = 1000000000,   /* drift is linear within a step */
    SIM_LEAST_STEP_NS = 500000, /* a clock jumps by so much, at least, */
    SIM_SMALL_STEP_NS = 1000    /* … or by so much, at most */
};

struct sim_options {
    uint64_t seed;
    unsigned machines; /* with the host; 2..SIM_MAX_MACHINES */
    int64_t span_ns;
    int64_t interval_ns;    /* between exchanges; 0: in bursts, as our own relay does */
    int64_t base_delay_ns;  /* smallest one-way delay */
    int64_t asymmetry_ns;   /* more on the way to the host, at most */
    int64_t jitter_ns;      /* mean of what is added at random */
    int64_t drift_ppb;      /* largest initial drift of a machine, either way */
    int64_t wander_ppb_s;   /* largest change of a machine's drift in a second */
    int64_t offset_ns;      /* largest offset, either way; 0: clocks start together */
    unsigned loss_percent;  /* exchanges lost, wholly or after the first half */
    bool reboot;            /* one machine reboots half-way */
    bool same_id;           /* … and keeps its machine id, as one whose id is not that of its boot */
    unsigned events;        /* a machine */
    unsigned rounds_packet; /* rounds a RemoteClockSync packet holds; 0: one packet with all */
    unsigned pauses;        /* of a machine, the host too: up to so many, of up to 4 s */
    unsigned jumps;         /* of its clock forward, of up to 4 s */
    unsigned rate_steps;    /* of up to 500 ppm, or of the whole of it for a slew of up to 1 % for some seconds */
    unsigned new_sources;   /* its kernel takes another clock source so often: all its rates step, some time is lost */
    int64_t source_ppb;     /* … by so much at most, and only that happens; 0: by up to 1000 ppm */
    bool disturbed_host;    /* this happens to the host's clock; else to the others */
    bool disciplined;       /* every second its rate is corrected by up to 50 ppb, and now and then by a few ppm */
    bool raw;               /* comparisons hold MONOTONIC_RAW, too: it drifts, and nobody corrects it */
    bool sources_told;      /* … and the number of changes of clock sources */
    bool once;              /* the first packet is the only one, as of a service that writes comparisons once */
};

struct sim_event {
    unsigned machine;  /* row of the simulator's machines */
    int64_t at;        /* true time */
    int64_t true_host; /* the host's clock at that moment */
    int64_t local;     /* what the machine's clock showed */
    int32_t cause;     /* index of the event that caused this one, -1 */
};

/* From true time `at` on the clock runs so much faster, and it has jumped. */
struct sim_bend {
    int64_t at;
    double drift_ppb;
    int64_t jump_ns;
    bool of_source; /* MONOTONIC_RAW bends, too */
};

struct sim_pause {
    int64_t at, length_ns;
};

struct sim_machine {
    uint32_t raw_id;
    struct sim_bend bends[SIM_MAX_BENDS];
    unsigned n_bends;
    struct sim_pause pauses[SIM_MAX_PAUSES]; /* by time; they do not overlap */
    unsigned n_pauses;
    int64_t offset;
    VEC(double)
    drift; /* ppb at each step */
    VEC(long double)
    ahead;        /* accumulated drift at each step, ns */
    int64_t born; /* true time */
    int64_t dies;
    int64_t last;  /* true time of the last comparison */
    int64_t ready; /* true time of the first whole comparison: before it nothing of this machine reaches the host */
};

struct sim_packet { /* where it stands in the scratch, and when the host has it */
    int64_t at;
    size_t first, len;
};

struct simulation {
    struct sim_options o;
    uint64_t random;
    unsigned n_machines; /* a reboot adds one */
    struct sim_machine m[SIM_MAX_MACHINES + 1];
    VEC(struct sim_event)
    events;
    VEC(struct sim_packet)
    packets;
    struct pb_writer scratch;
    struct pb_writer trace;
};

/* Options of a run, everything at random: within what a quartz does, or `disturbed`: with steps of time and rate. */
struct sim_options sim_random_options(uint64_t seed, bool disturbed);

/* Runs; s->trace holds the trace afterwards. */
void simulate(struct simulation *s, const struct sim_options *options);
void simulation_free(struct simulation *s);

#endif
