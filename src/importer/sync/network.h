/* Several clocks on one: the pairs that exchanged messages, the tree of best pairs, and every host's way to the
 * reference.
 *
 * Each pair of hosts has its own windows of proven lines (windows.h), or, to agree with Trace Compass, its incremental
 * hull. The weight of a pair is the largest error of its map over the time its messages span; the tree takes the pairs
 * with the smallest weights, and errors add up along it. Hosts that no message joins to the reference form islands of
 * their own. */
#ifndef MERIDIAN_IMPORTER_SYNC_NETWORK_H
#define MERIDIAN_IMPORTER_SYNC_NETWORK_H

#include "importer/sync/incremental.h"
#include "importer/sync/windows.h"

#include "base/u64map.h"

#define SYNC_METHODS(X)                                                                                                \
    X(EXACT, "exact")                                                                                                  \
    X(TRACE_COMPASS, "trace-compass")

enum sync_method {
#define X(name, text) SYNC_METHOD_##name,
    SYNC_METHODS(X)
#undef X
};

enum { SYNC_MAX_HOSTS = 65535, SYNC_NO_HOST = -1 };

struct sync_pair {
    uint32_t ref;   /* the host whose clock is x: the smaller number */
    uint32_t other; /* the host whose clock is y */
    struct sync_windows windows;
    struct incremental_sync incremental; /* only for SYNC_METHOD_TRACE_COMPASS */
    uint64_t n_to_other;                 /* messages sent by ref */
    uint64_t n_to_ref;
    uint64_t n_inverted_before; /* messages that seem to arrive before they leave, clocks as recorded */
    uint64_t n_inverted_after;  /* … with the maps applied */
    enum sync_quality quality;  /* the best window's; FAIL when no line fits and cutting is off */
    int64_t max_error_ns;       /* over the span of the messages; INT64_MAX when nothing is proven */
    bool in_tree;
};

struct sync_host {
    int parent;      /* next host on the way to the reference, SYNC_NO_HOST for a reference */
    uint32_t pair;   /* with the parent */
    uint32_t island; /* number of its group; 0 holds the chosen reference */
    uint32_t hops;
};

struct sync_network {
    uint32_t n_hosts;
    enum sync_method method;
    struct sync_limits limits;
    VEC(struct sync_pair)
    pairs;
    struct u64map pair_of; /* ref << 32 | other -> index of pairs */
    VEC(struct sync_host)
    hosts;
    uint32_t reference;
    uint32_t n_islands;
};

void sync_network_init(struct sync_network *n, uint32_t n_hosts, enum sync_method method, struct sync_limits limits);

/* A message between two different hosts, times on their own clocks. -MRD_ENOMEM, or -MRD_ELIMIT (times too large). */
int sync_network_message(struct sync_network *n, uint32_t sender, int64_t send_ts, uint32_t receiver,
                         int64_t receive_ts);

/* Solves every pair and grows the tree. `reference`: a host, or SYNC_NO_HOST for the one with the least total error. */
int sync_network_solve(struct sync_network *n, int reference);

/* The reference's time of a host's time. *error (may be NULL) is the proven bound, INT64_MAX where nothing is. Hosts of
 * other islands get the time of their own island's reference. */
int64_t sync_network_to_reference(const struct sync_network *n, uint32_t host, int64_t ts, int64_t *error);
/* The way back. */
int64_t sync_network_from_reference(const struct sync_network *n, uint32_t host, int64_t ts, int64_t *error);

/* The map from other to ref around x, as t_ref = slope * t_other + offset: for people; false when there is none. */
bool sync_pair_formula(const struct sync_network *n, const struct sync_pair *p, int64_t x, long double *slope,
                       long double *offset);

/* y of an x, and x of a y, along one pair by the network's method. */
int64_t sync_pair_apply(const struct sync_network *n, const struct sync_pair *p, int64_t x, int64_t *error);
int64_t sync_pair_invert(const struct sync_network *n, const struct sync_pair *p, int64_t y, int64_t *error);

void sync_network_free(struct sync_network *n);

#endif
