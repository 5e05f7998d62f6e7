/* Events of memory: process sizes, reclaim, contiguous allocations. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

enum { CMA_MIN_KERNEL = 5 << 16 | 10, CMA_FINISH_KERNEL = 6 << 16 | 1 };

struct cma_migration {
    uint64_t migrated, reclaimed, mapped;
};

struct mm {
    struct u64map mm_ids;     /* mm_id of rss_stat -> utid */
    struct u64map migrations; /* utid -> index in cma */
    VEC(struct cma_migration)
    cma;
};

static void release(void *state)
{
    struct mm *s = state;
    u64map_free(&s->mm_ids);
    u64map_free(&s->migrations);
    vec_free(&s->cma);
}

static struct mm *mm_state(const struct ftrace_event *e)
{
    return ftrace_family_state(e->f, FAMILY_MM, sizeof(struct mm), release);
}

/* The kernel's enum of rss counters; what comes behind has no name. */
static const char *const rss_keys[] = {"rss.file", "rss.anon", "swap", "rss.shmem", "rss.unknown"};
enum { RSS_KEYS = sizeof rss_keys / sizeof *rss_keys, RSS_UNKNOWN = RSS_KEYS - 1 };

/* Whose memory an event with an mm_id speaks of; UTID_NONE when that is not known. */
static uint32_t thread_of_mm(const struct ftrace_event *e, uint32_t mm_id, bool current)
{
    struct mm *s = mm_state(e);
    uint32_t utid = UTID_NONE;
    if (!s)
        return utid;
    if (current) {
        utid = event_utid(e);
        if (!u64map_set(&s->mm_ids, mm_id, utid))
            e->m->im->failed = true;
        return utid;
    }
    const uint64_t *known = u64map_get(&s->mm_ids, mm_id);
    if (!known)
        return UTID_NONE;
    utid = (uint32_t)*known;
    if (ROW_GET(e->m->st, thread, end_ts, utid) != COL_NULL) { /* the kernel gives ids of the dead to others */
        u64map_del(&s->mm_ids, mm_id);
        return UTID_NONE;
    }
    return utid;
}

static void rss(const struct ftrace_event *e, uint32_t member, int64_t size, bool has_mm_id, uint32_t mm_id,
                bool current)
{
    struct stats *stats = &e->m->st->stats;
    if (member >= RSS_KEYS) {
        stats_add(stats, e->m->id, STAT_rss_stat_unknown_keys, 1);
        member = RSS_UNKNOWN;
    }
    if (size < 0) {
        stats_add(stats, e->m->id, STAT_rss_stat_negative_size, 1);
        return;
    }
    uint32_t utid = has_mm_id ? thread_of_mm(e, mm_id, current) : event_utid(e);
    if (utid == UTID_NONE)
        stats_add(stats, e->m->id, STAT_rss_stat_unknown_thread_for_mm_id, 1);
    else
        pending_counter(e, utid, PENDING_MEMORY, rss_keys[member], NULL, (double)size);
}

static void rss_stat(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    rss(e, field_u32(&f, FTRACE_RSS_STAT_MEMBER), field_i64(&f, FTRACE_RSS_STAT_SIZE),
        field_has(&f, FTRACE_RSS_STAT_MM_ID), field_u32(&f, FTRACE_RSS_STAT_MM_ID),
        field_u32(&f, FTRACE_RSS_STAT_CURR) != 0);
}

static void rss_stat_throttled(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    rss(e, field_u32(&f, FTRACE_RSS_STAT_THROTTLED_MEMBER), field_i64(&f, FTRACE_RSS_STAT_THROTTLED_SIZE),
        field_has(&f, FTRACE_RSS_STAT_THROTTLED_MM_ID), field_u32(&f, FTRACE_RSS_STAT_THROTTLED_MM_ID),
        field_u32(&f, FTRACE_RSS_STAT_THROTTLED_CURR) != 0);
}

static void dmabuf_rss_stat(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    pending_counter(e, event_utid(e), PENDING_MEMORY, "dmabuf_rss", NULL,
                    (double)field_u64(&f, FTRACE_DMABUF_RSS_STAT_RSS));
}

/* Sixteen bits: old recorders wrote negative ones wrong above that. */
static void oom_score_adj_update(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t utid = process_tracker_thread(e->m->processes, field_i32(&f, FTRACE_OOM_SCORE_ADJ_UPDATE_PID));
    pending_counter(e, utid, PENDING_OOM_SCORE_ADJ, NULL, NULL,
                    (int16_t)field_i32(&f, FTRACE_OOM_SCORE_ADJ_UPDATE_OOM_SCORE_ADJ));
}

static void mm_event_record(const struct ftrace_event *e)
{
    static const char *const types[] = {"min_flt", "maj_flt", "read_io",   "compaction",
                                        "reclaim", "swp_flt", "kern_alloc"};
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t type = field_u32(&f, FTRACE_MM_EVENT_RECORD_TYPE), utid = event_utid(e);
    if (type >= sizeof types / sizeof *types) {
        stats_add(&e->m->st->stats, e->m->id, STAT_mm_unknown_type, 1);
        return;
    }
    pending_counter(e, utid, PENDING_MM_EVENT, types[type], "count", field_u32(&f, FTRACE_MM_EVENT_RECORD_COUNT));
    pending_counter(e, utid, PENDING_MM_EVENT, types[type], "max_lat", field_u32(&f, FTRACE_MM_EVENT_RECORD_MAX_LAT));
    pending_counter(e, utid, PENDING_MM_EVENT, types[type], "avg_lat", field_u32(&f, FTRACE_MM_EVENT_RECORD_AVG_LAT));
}

/* --- reclaim ----------------------------------------------------------------------------------------------------- */

static uint32_t own_track(const struct ftrace_event *e)
{
    return ftrace_thread_track(e, event_utid(e));
}

static void end_with(const struct ftrace_event *e, struct small_args *args)
{
    struct arg_list list = small_args_list(args);
    ftrace_end(e, own_track(e), 0, 0, &list);
}

static void direct_reclaim_begin(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "direct_reclaim_order", ARG_INT,
                   field_i32(&f, FTRACE_MM_VMSCAN_DIRECT_RECLAIM_BEGIN_ORDER));
    small_args_add(e, &args, "direct_reclaim_may_writepage", ARG_INT,
                   field_i32(&f, FTRACE_MM_VMSCAN_DIRECT_RECLAIM_BEGIN_MAY_WRITEPAGE));
    small_args_add(e, &args, "direct_reclaim_gfp_flags", ARG_UINT,
                   field_u32(&f, FTRACE_MM_VMSCAN_DIRECT_RECLAIM_BEGIN_GFP_FLAGS));
    ftrace_begin(e, own_track(e), 0, ftrace_text(e, "mm_vmscan_direct_reclaim"), small_args_set(e, &args));
}

static void direct_reclaim_end(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "direct_reclaim_nr_reclaimed", ARG_UINT,
                   field_i64(&f, FTRACE_MM_VMSCAN_DIRECT_RECLAIM_END_NR_RECLAIMED));
    end_with(e, &args);
}

static void memcg_reclaim_begin(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "memcg_reclaim_order", ARG_INT, field_i32(&f, FTRACE_MM_VMSCAN_MEMCG_RECLAIM_BEGIN_ORDER));
    small_args_add(e, &args, "memcg_reclaim_may_writepage", ARG_INT,
                   field_i32(&f, FTRACE_MM_VMSCAN_MEMCG_RECLAIM_BEGIN_MAY_WRITEPAGE));
    small_args_add(e, &args, "memcg_reclaim_gfp_flags", ARG_UINT,
                   field_i64(&f, FTRACE_MM_VMSCAN_MEMCG_RECLAIM_BEGIN_GFP_FLAGS));
    ftrace_begin(e, own_track(e), 0, ftrace_text(e, "mm_vmscan_memcg_reclaim"), small_args_set(e, &args));
}

static void memcg_reclaim_end(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "memcg_reclaim_nr_reclaimed", ARG_UINT,
                   field_i64(&f, FTRACE_MM_VMSCAN_MEMCG_RECLAIM_END_NR_RECLAIMED));
    end_with(e, &args);
}

static void shrink_slab_start(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "shrink_name", ARG_STRING,
                   ftrace_kernel_symbol(e, field_u64(&f, FTRACE_MM_SHRINK_SLAB_START_SHRINK)));
    small_args_add(e, &args, "total_scan", ARG_UINT, field_i64(&f, FTRACE_MM_SHRINK_SLAB_START_TOTAL_SCAN));
    small_args_add(e, &args, "priority", ARG_INT, field_i32(&f, FTRACE_MM_SHRINK_SLAB_START_PRIORITY));
    ftrace_begin(e, own_track(e), 0, ftrace_text(e, "mm_vmscan_shrink_slab"), small_args_set(e, &args));
}

static void shrink_slab_end(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "freed", ARG_INT, field_i32(&f, FTRACE_MM_SHRINK_SLAB_END_RETVAL));
    end_with(e, &args);
}

/* --- contiguous allocations: start, info up to kernel 6.0; start, range info, finish since ------------------------ */

static uint32_t kernel(const struct ftrace_event *e)
{
    return e->m->kernel_major << 16 | e->m->kernel_minor;
}

static void note_migration(const struct ftrace_event *e, struct cma_migration migration)
{
    struct mm *s = mm_state(e);
    bool added;
    uint64_t *at = s ? u64map_put(&s->migrations, event_utid(e), &added) : NULL;
    if (!at || (added && !vec_push(&s->cma, migration))) {
        e->m->im->failed = true;
        return;
    }
    if (added)
        *at = s->cma.n - 1;
    s->cma.p[*at] = migration;
}

static void cma_alloc_start(const struct ftrace_event *e)
{
    if (kernel(e) < CMA_MIN_KERNEL)
        return;
    if (kernel(e) >= CMA_FINISH_KERNEL)
        note_migration(e, (struct cma_migration){0});
    ftrace_begin(e, own_track(e), 0, ftrace_text(e, "mm_cma_alloc"), ARGSET_NONE);
}

static void migrate_range_info(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    if (kernel(e) >= CMA_FINISH_KERNEL)
        note_migration(e, (struct cma_migration){field_u64(&f, FTRACE_MM_ALLOC_CONTIG_MIGRATE_RANGE_INFO_NR_MIGRATED),
                                                 field_u64(&f, FTRACE_MM_ALLOC_CONTIG_MIGRATE_RANGE_INFO_NR_RECLAIMED),
                                                 field_u64(&f, FTRACE_MM_ALLOC_CONTIG_MIGRATE_RANGE_INFO_NR_MAPPED)});
}

static void add_cma_args(const struct ftrace_event *e, struct small_args *args, strid name, uint64_t pfn,
                         uint64_t pages, const struct cma_migration *m)
{
    small_args_add(e, args, "cma_name", ARG_STRING, name);
    small_args_add(e, args, "cma_pfn", ARG_UINT, (int64_t)pfn);
    small_args_add(e, args, "cma_req_pages", ARG_UINT, (int64_t)pages);
    small_args_add(e, args, "cma_nr_migrated", ARG_UINT, (int64_t)m->migrated);
    small_args_add(e, args, "cma_nr_reclaimed", ARG_UINT, (int64_t)m->reclaimed);
    small_args_add(e, args, "cma_nr_mapped", ARG_UINT, (int64_t)m->mapped);
}

static void cma_alloc_finish(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    struct mm *s = mm_state(e);
    fields_read(e->payload, &f);
    if (!s || kernel(e) < CMA_FINISH_KERNEL)
        return;
    const uint64_t *at = u64map_get(&s->migrations, event_utid(e));
    struct cma_migration m = at ? s->cma.p[*at] : (struct cma_migration){0};
    add_cma_args(e, &args, field_str(e, &f, FTRACE_CMA_ALLOC_FINISH_NAME), field_u64(&f, FTRACE_CMA_ALLOC_FINISH_PFN),
                 field_u64(&f, FTRACE_CMA_ALLOC_FINISH_COUNT), &m);
    end_with(e, &args);
}

static void cma_alloc_info(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    if (kernel(e) < CMA_MIN_KERNEL || kernel(e) >= CMA_FINISH_KERNEL)
        return;
    struct cma_migration m = {field_u64(&f, FTRACE_CMA_ALLOC_INFO_NR_MIGRATED),
                              field_u64(&f, FTRACE_CMA_ALLOC_INFO_NR_RECLAIMED),
                              field_u64(&f, FTRACE_CMA_ALLOC_INFO_NR_MAPPED)};
    add_cma_args(e, &args, field_str(e, &f, FTRACE_CMA_ALLOC_INFO_NAME), field_u64(&f, FTRACE_CMA_ALLOC_INFO_PFN),
                 field_u32(&f, FTRACE_CMA_ALLOC_INFO_COUNT), &m);
    small_args_add(e, &args, "cma_nr_isolate_fail", ARG_UINT, field_u32(&f, FTRACE_CMA_ALLOC_INFO_ERR_ISO));
    small_args_add(e, &args, "cma_nr_migrate_fail", ARG_UINT, field_u32(&f, FTRACE_CMA_ALLOC_INFO_ERR_MIG));
    small_args_add(e, &args, "cma_nr_test_fail", ARG_UINT, field_u32(&f, FTRACE_CMA_ALLOC_INFO_ERR_TEST));
    end_with(e, &args);
}

const struct ftrace_handler ftrace_handlers_mm[] = {
    {FTRACE_EVENT_MM_VMSCAN_DIRECT_RECLAIM_BEGIN, "mm_vmscan_direct_reclaim_begin", direct_reclaim_begin},
    {FTRACE_EVENT_MM_VMSCAN_DIRECT_RECLAIM_END, "mm_vmscan_direct_reclaim_end", direct_reclaim_end},
    {FTRACE_EVENT_RSS_STAT, "rss_stat", rss_stat},
    {FTRACE_EVENT_OOM_SCORE_ADJ_UPDATE, "oom_score_adj_update", oom_score_adj_update},
    {FTRACE_EVENT_MM_EVENT_RECORD, "mm_event_record", mm_event_record},
    {FTRACE_EVENT_RSS_STAT_THROTTLED, "rss_stat_throttled", rss_stat_throttled},
    {FTRACE_EVENT_MM_SHRINK_SLAB_START, "mm_shrink_slab_start", shrink_slab_start},
    {FTRACE_EVENT_MM_SHRINK_SLAB_END, "mm_shrink_slab_end", shrink_slab_end},
    {FTRACE_EVENT_CMA_ALLOC_START, "cma_alloc_start", cma_alloc_start},
    {FTRACE_EVENT_CMA_ALLOC_INFO, "cma_alloc_info", cma_alloc_info},
    {FTRACE_EVENT_CMA_ALLOC_FINISH, "cma_alloc_finish", cma_alloc_finish},
    {FTRACE_EVENT_MM_ALLOC_CONTIG_MIGRATE_RANGE_INFO, "mm_alloc_contig_migrate_range_info", migrate_range_info},
    {FTRACE_EVENT_DMABUF_RSS_STAT, "dmabuf_rss_stat", dmabuf_rss_stat},
    {FTRACE_EVENT_MM_VMSCAN_MEMCG_RECLAIM_BEGIN, "mm_vmscan_memcg_reclaim_begin", memcg_reclaim_begin},
    {FTRACE_EVENT_MM_VMSCAN_MEMCG_RECLAIM_END, "mm_vmscan_memcg_reclaim_end", memcg_reclaim_end},
    {0, NULL, NULL},
};
