/* The systemd journal: entries into `logs`, its own losses into stats. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

static const char *const arg_names[] = {
    [SYSTEMD_JOURNALD_EVENT_UID] = "uid",
    [SYSTEMD_JOURNALD_EVENT_GID] = "gid",
    [SYSTEMD_JOURNALD_EVENT_COMM] = "comm",
    [SYSTEMD_JOURNALD_EVENT_EXE] = "exe",
    [SYSTEMD_JOURNALD_EVENT_SYSTEMD_UNIT] = "systemd_unit",
    [SYSTEMD_JOURNALD_EVENT_HOSTNAME] = "hostname",
    [SYSTEMD_JOURNALD_EVENT_TRANSPORT] = "transport",
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
        case SYSTEMD_JOURNALD_EVENT_PID:
            pid = pb_u32(&f);
            break;
        case SYSTEMD_JOURNALD_EVENT_TID:
            tid = pb_u32(&f);
            break;
        case SYSTEMD_JOURNALD_EVENT_PRIO:
            row.prio = pb_u32(&f);
            break;
        case SYSTEMD_JOURNALD_EVENT_TAG:
            row.tag = import_slice(m->im, pb_bytes(&f));
            break;
        case SYSTEMD_JOURNALD_EVENT_MESSAGE:
            row.msg = import_slice(m->im, pb_bytes(&f));
            break;
        case SYSTEMD_JOURNALD_EVENT_NUM_TOTAL:
            stats_set(&m->st->stats, m->id, STAT_systemd_journal_num_total, pb_i64(&f));
            is_stats = true;
            break;
        case SYSTEMD_JOURNALD_EVENT_NUM_FAILED:
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
