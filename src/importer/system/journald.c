/* Owns the systemd journal: entries into `logs`, its own losses into stats. */
#include "importer/system/system_internal.h"

static const char *const arg_names[] = {
    [3] = "uid", [4] = "gid", [8] = "comm", [9] = "exe", [10] = "systemd_unit", [11] = "hostname", [12] = "transport",
};

void journald_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct logs_row row = {.ts = p->ts,
                           .utid = COL_NULL,
                           .log_source = import_str(m->im, "systemd_journal"),
                           .msg = import_str(m->im, "")};
    struct arg_list args = {0};
    uint32_t pid = 0, tid = 0;
    bool is_stats = false;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id < sizeof arg_names / sizeof *arg_names && arg_names[f.id]) {
            if (f.wire == PB_BYTES)
                arg_list_str(&m->st->args, &args, arg_names[f.id], import_slice(m->im, pb_bytes(&f)));
            else
                arg_list_uint(&m->st->args, &args, arg_names[f.id], pb_u64(&f));
            continue;
        }
        switch (f.id) {
        case 1:
            pid = pb_u32(&f);
            break;
        case 2:
            tid = pb_u32(&f);
            break;
        case 5:
            row.prio = pb_u32(&f);
            break;
        case 6:
            row.tag = import_slice(m->im, pb_bytes(&f));
            break;
        case 7:
            row.msg = import_slice(m->im, pb_bytes(&f));
            break;
        case 20:
            stats_set(&m->st->stats, m->id, STAT_systemd_journal_num_total, pb_i64(&f));
            is_stats = true;
            break;
        case 21:
            stats_set(&m->st->stats, m->id, STAT_systemd_journal_num_failed, pb_i64(&f));
            is_stats = true;
            break;
        }
    }
    if (!is_stats) {
        if (pid && tid)
            row.utid = process_tracker_update_thread(m->processes, tid, pid);
        else if (tid || pid)
            row.utid = process_tracker_thread(m->processes, tid ? tid : pid);
        row.arg_set_id = args_intern(&m->st->args, args.p, args.n);
        logs_insert(m->st, &row);
    }
    arg_list_free(&args);
}
