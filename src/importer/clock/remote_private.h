/* Shared by the parts of remote clocks (models, boots); for remote_*.c and clock_state.c only. */
#ifndef MERIDIAN_IMPORTER_CLOCK_REMOTE_PRIVATE_H
#define MERIDIAN_IMPORTER_CLOCK_REMOTE_PRIVATE_H

#include "importer/clock/remote_sync.h"

enum { NO_MACHINE = -1 };

/* One boot of a remote machine. */
struct remote_machine {
    uint64_t raw_id;
    int64_t machine;     /* row, or NO_MACHINE */
    uint32_t host;       /* row of the machine it was compared with */
    uint32_t clock_file; /* of both machines' clocks */
    unsigned packets;    /* counted at the first boot */
    bool more;           /* our service's own comparisons are among them */
    unsigned boot;
    struct remote_machine *next_boot; /* the same machine after its clock started anew; NULL: this is the latest */
    struct remote_machine *current;   /* at the first boot: the one whose comparisons came last in file order */
    struct clock_rounds rounds;       /* of all packets, in file order; for the line */
    VEC(struct clock_rounds)
    packet_rounds;                     /* of each packet, kept while it waits for the end of the file */
    int64_t first_remote, last_remote; /* BOOTTIME of the rounds, once there is one */
    int64_t first_host, last_host;
    bool seen; /* there is one */
    struct clock_line line;
    bool decided;
    bool linear;
    bool synced; /* something relates it to the host */
};

struct remote_sync {
    struct importer *im;
    VEC(struct remote_machine *)
    machines;      /* the first boot of a machine stands before the others */
    bool known;    /* every round of the file has been noted */
    bool at_end;   /* of the file */
    bool rebooted; /* a machine has several boots */
};

/* A new boot of a machine, or its first. NULL when out of memory. */
struct remote_machine *remote_add_boot(struct remote_sync *s, uint64_t raw_id, struct remote_machine *before);

/* The map of its line. */
struct clock_map remote_line_map(const struct remote_machine *r);

/* Deals the rounds of a packet out to the boots of the machine `first`; `each` is called for each run of rounds of one
 * boot. A round begins a new boot when `split` and its clock has started anew. */
typedef bool (*remote_rounds_fn)(struct remote_machine *boot, const struct clock_rounds *rounds);
bool remote_deal_rounds(struct remote_sync *s, struct remote_machine *first, const struct clock_rounds *rounds,
                        bool split, remote_rounds_fn each);

/* The boot that a comparison of host time `host` is of. */
struct remote_machine *remote_boot_at(struct remote_machine *first, int64_t host);

/* The reading of a clock in one side of a round, NULL when it is not there. */
const int64_t *round_value(const struct clock_reading *r, size_t n, uint32_t clock);

/* The constant offset: edges and rows of clock_snapshot for the rounds of one packet. `remote` and `host` say whose
 * clocks these are (their id is ignored). */
void remote_sync_compatible(struct importer *im, struct clock_id remote, struct clock_id host,
                            const struct clock_rounds *rounds);

/* The same rows where a line relates the clocks, for the queries that look for them; and the machine's own clocks as
 * the last round has them. */
void remote_sync_rows(struct importer *im, struct clock_id remote, struct clock_id host,
                      const struct clock_rounds *rounds);

#endif
