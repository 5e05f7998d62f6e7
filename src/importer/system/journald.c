/* The systemd journal: entries into `logs`, its own losses into stats. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

/* What becomes args, in their order; those after the first five are kept here alone. */
static const struct {
    uint32_t field;
    const char *key;
} arg_fields[] = {
    {SYSTEMD_JOURNALD_EVENT_UID, "uid"},
    {SYSTEMD_JOURNALD_EVENT_COMM, "comm"},
    {SYSTEMD_JOURNALD_EVENT_SYSTEMD_UNIT, "systemd_unit"},
    {SYSTEMD_JOURNALD_EVENT_HOSTNAME, "hostname"},
    {SYSTEMD_JOURNALD_EVENT_TRANSPORT, "transport"},
    {SYSTEMD_JOURNALD_EVENT_GID, "gid"},
    {SYSTEMD_JOURNALD_EVENT_EXE, "exe"},
};

static argset entry_args(struct machine_ctx *m, struct slice entry)
{
    struct arg_list list = {0};
    struct pb_field f;
    for (size_t i = 0; i < sizeof arg_fields / sizeof *arg_fields; i++) {
        if (!pb_find(entry, arg_fields[i].field, &f))
            continue;
        if (f.wire == PB_BYTES)
            arg_list_str(&m->st->args, &list, arg_fields[i].key, import_slice(m->im, pb_bytes(&f)));
        else
            arg_list_int(&m->st->args, &list, arg_fields[i].key, pb_u32(&f));
    }
    argset set = args_intern(&m->st->args, list.p, list.n);
    arg_list_free(&list);
    return set;
}

/* Packets of counts are no entries. */
static bool set_counts(struct machine_ctx *m, struct slice entry)
{
    struct pb_field f;
    bool total = pb_find(entry, SYSTEMD_JOURNALD_EVENT_NUM_TOTAL, &f);
    if (total)
        stats_set(&m->st->stats, m->id, STAT_systemd_journal_num_total, pb_i64(&f));
    bool failed = pb_find(entry, SYSTEMD_JOURNALD_EVENT_NUM_FAILED, &f);
    if (failed)
        stats_set(&m->st->stats, m->id, STAT_systemd_journal_num_failed, pb_i64(&f));
    return total || failed;
}

void journald_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct logs_row row = {.ts = p->ts,
                           .utid = COL_NULL,
                           .log_source = import_str(m->im, "systemd_journald"),
                           .msg = import_str(m->im, "")};
    struct pb_field f;
    if (set_counts(m, p->field))
        return;
    uint32_t pid = pb_find(p->field, SYSTEMD_JOURNALD_EVENT_PID, &f) ? pb_u32(&f) : 0;
    uint32_t tid = pb_find(p->field, SYSTEMD_JOURNALD_EVENT_TID, &f) ? pb_u32(&f) : pid;
    if (pid)
        row.utid = process_tracker_update_thread(m->processes, tid, pid);
    if (pb_find(p->field, SYSTEMD_JOURNALD_EVENT_PRIO, &f))
        row.prio = pb_u32(&f);
    if (pb_find(p->field, SYSTEMD_JOURNALD_EVENT_TAG, &f))
        row.tag = import_slice(m->im, pb_bytes(&f));
    if (pb_find(p->field, SYSTEMD_JOURNALD_EVENT_MESSAGE, &f))
        row.msg = import_slice(m->im, pb_bytes(&f));
    row.arg_set_id = entry_args(m, p->field);
    logs_insert(m->st, &row);
}
