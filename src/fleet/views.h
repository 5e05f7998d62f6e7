/* What people ask of a fleet, ready as views (docs/fleet.md). */
#ifndef MERIDIAN_FLEET_VIEWS_H
#define MERIDIAN_FLEET_VIEWS_H

#include <stdbool.h>
#include <stddef.h>

struct fleet_view {
    const char *name;
    const char *sql; /* with '$' and '@': views.def */
    bool part;       /* of each shard, with a table over all */
};
extern const struct fleet_view fleet_views[];
extern const size_t n_fleet_views;

#endif
