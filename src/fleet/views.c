/* What people ask of a fleet, ready as views. */
#include "fleet/views.h"

const struct fleet_view fleet_views[] = {
#define PART(name, sql) {#name, sql, true},
#define VIEW(name, sql) {#name, sql, false},
#include "fleet/views.def"
#undef PART
#undef VIEW
};
const size_t n_fleet_views = sizeof fleet_views / sizeof *fleet_views;
