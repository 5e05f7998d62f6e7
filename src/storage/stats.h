/* Counters of what was lost or odd, as SQL shows them in `stats`. Declared once in stats.def. */
#ifndef MERIDIAN_STORAGE_STATS_H
#define MERIDIAN_STORAGE_STATS_H

#include "base/u64map.h"
#include "base/vec.h"

enum stat_key {
#define STAT(name, type, severity, source, scope, doc) STAT_##name,
#include "storage/stats.def"
#undef STAT
    STAT_COUNT
};

enum stat_type { STAT_SINGLE, STAT_INDEXED };
enum stat_severity { STAT_INFO, STAT_NOTICE, STAT_DATA_LOSS, STAT_ERROR };
enum stat_source { STAT_TRACE, STAT_ANALYSIS };
enum stat_scope { STAT_GLOBAL, STAT_MACHINE };

struct stat_def {
    const char *name;
    uint8_t type, severity, source, scope; /* enums above */
    const char *doc;                       /* one sentence for the user: what it counts, never "" */
};

extern const struct stat_def stat_defs[STAT_COUNT];
extern const char *const stat_severity_names[]; /* "info", "notice", "data_loss", "error" */
extern const char *const stat_source_names[];   /* "trace", "analysis" */

/* A stat belongs to a machine row (0 for the host); those of scope GLOBAL are kept under machine 0, whatever is given.
 */
struct stats {
    VEC(int64_t)
    single;                /* [machine * STAT_COUNT + key] */
    struct u64map indexed; /* machine << 48 | key << 32 | (uint32_t)idx -> value */
    bool failed;
};

void stats_add(struct stats *s, uint32_t machine, enum stat_key key, int64_t delta);
void stats_set(struct stats *s, uint32_t machine, enum stat_key key, int64_t value);
void stats_add_idx(struct stats *s, uint32_t machine, enum stat_key key, int32_t idx, int64_t delta);
void stats_set_idx(struct stats *s, uint32_t machine, enum stat_key key, int32_t idx, int64_t value);

/* The value, 0 when never set. */
int64_t stats_get(const struct stats *s, uint32_t machine, enum stat_key key);
/* Whether any of its values, whatever the index, is above 0. */
bool stats_any(const struct stats *s, uint32_t machine, enum stat_key key);
/* NULL when never set. */
const int64_t *stats_get_idx(const struct stats *s, uint32_t machine, enum stat_key key, int32_t idx);

void stats_free(struct stats *s);

#endif
