/* Events of storage: block io, f2fs, android_fs, UFS. */
#include "base/hash.h"
#include "importer/ftrace/ftrace_internal.h"
#include "wire/fields.h"

struct block {
    struct u64map readers; /* hash of (inode, offset) -> tid that reads there */
};

static void release(void *state)
{
    struct block *b = state;
    u64map_free(&b->readers);
}

/* The track is declared as one of counters, and has slices. */
static uint32_t block_track(const struct ftrace_event *e, uint64_t dev)
{
    return FTRACE_TRACK(e, TRACK_COUNTER, "block_io", 0, DIM_I("block_device", dev));
}

static void block_io_start(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "sector", ARG_UINT, field_i64(&f, FTRACE_BLOCK_IO_START_SECTOR));
    ftrace_begin(e, block_track(e, field_u64(&f, FTRACE_BLOCK_IO_START_DEV)), 0, ftrace_text(e, "block_io"),
                 small_args_set(e, &args));
}

static void block_io_done(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "sector", ARG_UINT, field_i64(&f, FTRACE_BLOCK_IO_DONE_SECTOR));
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, block_track(e, field_u64(&f, FTRACE_BLOCK_IO_DONE_DEV)), 0, ftrace_text(e, "block_io"), &list);
}

/* --- f2fs -------------------------------------------------------------------------------------------------------- */

/* A field of an event and the name of its counter. */
struct counter_field {
    uint8_t field;
    const char *name;
};

static void device_counters(const struct ftrace_event *e, const char *type, unsigned dev_field,
                            const struct counter_field *counters, size_t n)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint64_t dev = field_u64(&f, dev_field);
    uint32_t major = (uint32_t)(dev >> 8 & 0xff), minor = (uint32_t)(dev & 0xff);
    strid device = ftrace_name(e, "%u:%u", major, minor);
    for (size_t i = 0; i < n; i++) {
        strid name = ftrace_name(e, "%s.[%u:%u].%s", type, major, minor, counters[i].name);
        uint32_t track = FTRACE_TRACK(e, TRACK_COUNTER, type, name, DIM_S("linux_device", device),
                                      DIM_S("counter_key", ftrace_text(e, counters[i].name)));
        ftrace_counter(e, track, (double)field_u64(&f, counters[i].field));
    }
}

static void f2fs_iostat(const struct ftrace_event *e)
{
    static const struct counter_field counters[] = {
        {FTRACE_F2FS_IOSTAT_APP_WIO, "write_app_total"},    {FTRACE_F2FS_IOSTAT_APP_DIO, "write_app_direct"},
        {FTRACE_F2FS_IOSTAT_APP_BIO, "write_app_buffered"}, {FTRACE_F2FS_IOSTAT_APP_MIO, "write_app_mapped"},
        {FTRACE_F2FS_IOSTAT_FS_DIO, "write_fs_data"},       {FTRACE_F2FS_IOSTAT_FS_NIO, "write_fs_node"},
        {FTRACE_F2FS_IOSTAT_FS_MIO, "write_fs_meta"},       {FTRACE_F2FS_IOSTAT_FS_GC_DIO, "write_gc_data"},
        {FTRACE_F2FS_IOSTAT_FS_GC_NIO, "write_gc_node"},    {FTRACE_F2FS_IOSTAT_FS_CP_DIO, "write_cp_data"},
        {FTRACE_F2FS_IOSTAT_FS_CP_NIO, "write_cp_node"},    {FTRACE_F2FS_IOSTAT_FS_CP_MIO, "write_cp_meta"},
        {FTRACE_F2FS_IOSTAT_APP_RIO, "read_app_total"},     {FTRACE_F2FS_IOSTAT_APP_DRIO, "read_app_direct"},
        {FTRACE_F2FS_IOSTAT_APP_BRIO, "read_app_buffered"}, {FTRACE_F2FS_IOSTAT_APP_MRIO, "read_app_mapped"},
        {FTRACE_F2FS_IOSTAT_FS_DRIO, "read_fs_data"},       {FTRACE_F2FS_IOSTAT_FS_GDRIO, "read_fs_gdata"},
        {FTRACE_F2FS_IOSTAT_FS_CDRIO, "read_fs_cdata"},     {FTRACE_F2FS_IOSTAT_FS_NRIO, "read_fs_node"},
        {FTRACE_F2FS_IOSTAT_FS_MRIO, "read_fs_meta"},       {FTRACE_F2FS_IOSTAT_FS_DISCARD, "other_fs_discard"},
    };
    device_counters(e, "f2fs_iostat", FTRACE_F2FS_IOSTAT_DEV, counters, sizeof counters / sizeof *counters);
}

static void f2fs_iostat_latency(const struct ftrace_event *e)
{
    static const struct counter_field counters[] = {
        {FTRACE_F2FS_IOSTAT_LATENCY_D_RD_PEAK, "read_data_peak"},
        {FTRACE_F2FS_IOSTAT_LATENCY_D_RD_AVG, "read_data_avg"},
        {FTRACE_F2FS_IOSTAT_LATENCY_D_RD_CNT, "read_data_cnt"},
        {FTRACE_F2FS_IOSTAT_LATENCY_N_RD_PEAK, "read_node_peak"},
        {FTRACE_F2FS_IOSTAT_LATENCY_N_RD_AVG, "read_node_avg"},
        {FTRACE_F2FS_IOSTAT_LATENCY_N_RD_CNT, "read_node_cnt"},
        {FTRACE_F2FS_IOSTAT_LATENCY_M_RD_PEAK, "read_meta_peak"},
        {FTRACE_F2FS_IOSTAT_LATENCY_M_RD_AVG, "read_meta_avg"},
        {FTRACE_F2FS_IOSTAT_LATENCY_M_RD_CNT, "read_meta_cnt"},
        {FTRACE_F2FS_IOSTAT_LATENCY_D_WR_S_PEAK, "write_sync_data_peak"},
        {FTRACE_F2FS_IOSTAT_LATENCY_D_WR_S_AVG, "write_sync_data_avg"},
        {FTRACE_F2FS_IOSTAT_LATENCY_D_WR_S_CNT, "write_sync_data_cnt"},
        {FTRACE_F2FS_IOSTAT_LATENCY_N_WR_S_PEAK, "write_sync_node_peak"},
        {FTRACE_F2FS_IOSTAT_LATENCY_N_WR_S_AVG, "write_sync_node_avg"},
        {FTRACE_F2FS_IOSTAT_LATENCY_N_WR_S_CNT, "write_sync_node_cnt"},
        {FTRACE_F2FS_IOSTAT_LATENCY_M_WR_S_PEAK, "write_sync_meta_peak"},
        {FTRACE_F2FS_IOSTAT_LATENCY_M_WR_S_AVG, "write_sync_meta_avg"},
        {FTRACE_F2FS_IOSTAT_LATENCY_M_WR_S_CNT, "write_sync_meta_cnt"},
        {FTRACE_F2FS_IOSTAT_LATENCY_D_WR_AS_PEAK, "write_async_data_peak"},
        {FTRACE_F2FS_IOSTAT_LATENCY_D_WR_AS_AVG, "write_async_data_avg"},
        {FTRACE_F2FS_IOSTAT_LATENCY_D_WR_AS_CNT, "write_async_data_cnt"},
        {FTRACE_F2FS_IOSTAT_LATENCY_N_WR_AS_PEAK, "write_async_node_peak"},
        {FTRACE_F2FS_IOSTAT_LATENCY_N_WR_AS_AVG, "write_async_node_avg"},
        {FTRACE_F2FS_IOSTAT_LATENCY_N_WR_AS_CNT, "write_async_node_cnt"},
        {FTRACE_F2FS_IOSTAT_LATENCY_M_WR_AS_PEAK, "write_async_meta_peak"},
        {FTRACE_F2FS_IOSTAT_LATENCY_M_WR_AS_AVG, "write_async_meta_avg"},
        {FTRACE_F2FS_IOSTAT_LATENCY_M_WR_AS_CNT, "write_async_meta_cnt"},
    };
    device_counters(e, "f2fs_iostat_latency", FTRACE_F2FS_IOSTAT_LATENCY_DEV, counters,
                    sizeof counters / sizeof *counters);
}

static void f2fs_write_checkpoint(const struct ftrace_event *e)
{
    enum { PHASE_START = 0, PHASE_FINISH = 2 };
    static const char *const reasons[] = {"Umount",  "Fastboot", "Sync",  "Recovery",
                                          "Discard", "Trimmed",  "Pause", "Resize"};
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    uint32_t phase = field_u32(&f, FTRACE_F2FS_WRITE_CHECKPOINT_PHASE);
    int32_t reason = field_i32(&f, FTRACE_F2FS_WRITE_CHECKPOINT_REASON);
    if (phase != PHASE_START && phase != PHASE_FINISH)
        return;
    uint32_t upid = process_tracker_process(e->m->processes, (int32_t)e->pid);
    uint32_t track = FTRACE_TRACK(e, TRACK_SLICE, "f2fs_write_checkpoint", ftrace_name(e, "f2fs_ckpt %u", e->pid),
                                  DIM_I("upid", upid));
    ftrace_end(e, track, 0, 0, NULL); /* a start also ends what was left open */
    if (phase == PHASE_FINISH)
        return;
    small_args_add(e, &args, "dev", ARG_UINT, field_i64(&f, FTRACE_F2FS_WRITE_CHECKPOINT_DEV));
    small_args_add(e, &args, "reason_int", ARG_INT, reason);
    if (reason == 0)
        small_args_add(e, &args, "reason_str", ARG_STRING, ftrace_text(e, "Unknown"));
    strid flat = ftrace_text(e, "reason_str");
    for (uint32_t i = 0, n = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reason >> i & 1)
            args.items[args.n++] =
                (struct arg){flat, ftrace_name(e, "reason_str[%u]", n++), ftrace_text(e, reasons[i]), ARG_STRING};
    ftrace_begin(e, track, 0, ftrace_text(e, "F2fs Write Checkpoint"), small_args_set(e, &args));
}

/* --- android_fs: a read is told by inode and offset; its slice is known by the thread that began it ----------------
 */

static uint64_t read_key(const struct ftrace_event *e, uint64_t inode, int64_t offset)
{
    return hash_keyed(e->m->im->secret, inode, (uint64_t)offset);
}

static void dataread_start(const struct ftrace_event *e)
{
    struct block *b = ftrace_family_state(e->f, FAMILY_BLOCK, sizeof *b, release);
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    if (!b)
        return;
    if (!u64map_set(&b->readers,
                    read_key(e, field_u64(&f, FTRACE_ANDROID_FS_DATAREAD_START_INO),
                             field_i64(&f, FTRACE_ANDROID_FS_DATAREAD_START_OFFSET)),
                    e->pid))
        e->m->im->failed = true;
    uint32_t set = ftrace_track_set(e, "android_fs", ftrace_text(e, "android_fs"), NULL, 0);
    small_args_add(e, &args, "file_path", ARG_STRING, field_str(e, &f, FTRACE_ANDROID_FS_DATAREAD_START_PATHBUF));
    small_args_add(e, &args, "offset_start", ARG_INT, field_i64(&f, FTRACE_ANDROID_FS_DATAREAD_START_OFFSET));
    small_args_add(e, &args, "bytes_read_start", ARG_INT, field_i32(&f, FTRACE_ANDROID_FS_DATAREAD_START_BYTES));
    ftrace_begin(e, track_set_begin(e->m->im->tracks, set, e->pid), 0, ftrace_text(e, "android_fs_data_read"),
                 small_args_set(e, &args));
}

static void dataread_end(const struct ftrace_event *e)
{
    struct block *b = ftrace_family_state(e->f, FAMILY_BLOCK, sizeof *b, release);
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    uint64_t key = read_key(e, field_u64(&f, FTRACE_ANDROID_FS_DATAREAD_END_INO),
                            field_i64(&f, FTRACE_ANDROID_FS_DATAREAD_END_OFFSET));
    const uint64_t *tid = b ? u64map_get(&b->readers, key) : NULL;
    if (!tid)
        return;
    uint32_t set = ftrace_track_set(e, "android_fs", ftrace_text(e, "android_fs"), NULL, 0);
    uint32_t track = track_set_end(e->m->im->tracks, set, (int64_t)*tid);
    u64map_del(&b->readers, key);
    small_args_add(e, &args, "offset_end", ARG_INT, field_i64(&f, FTRACE_ANDROID_FS_DATAREAD_END_OFFSET));
    small_args_add(e, &args, "bytes_read_end", ARG_INT, field_i32(&f, FTRACE_ANDROID_FS_DATAREAD_END_BYTES));
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, track, 0, 0, &list);
}

/* --- UFS --------------------------------------------------------------------------------------------------------- */

/* SCSI operation codes. */
static const struct {
    uint8_t code;
    const char *name;
} ufs_commands[] = {
    {0, "TEST UNIT READY"},
    {3, "REQUEST SENSE"},
    {4, "FORMAT UNIT"},
    {8, "READ (6)"},
    {10, "WRITE (6)"},
    {18, "INQUIRY"},
    {27, "START STOP UNIT"},
    {29, "SEND DIAGNOSTIC"},
    {37, "READ CAPACITY (10)"},
    {40, "READ (10)"},
    {42, "WRITE (10)"},
    {47, "VERIFY"},
    {52, "PRE-FETCH (10)"},
    {53, "SYNCHRONIZE CACHE (10)"},
    {59, "WRITE BUFFER"},
    {60, "READ BUFFER"},
    {66, "UNMAP"},
    {85, "MODE SELECT (10)"},
    {90, "MODE SENSE (10)"},
    {136, "READ (16)"},
    {138, "WRITE (16)"},
    {144, "PRE-FETCH (16)"},
    {145, "SYNCHRONIZE CACHE (16)"},
    {158, "READ CAPACITY (16)"},
    {160, "REPORT LUNS"},
    {162, "SECURITY PROTOCOL IN"},
    {181, "SECURITY PROTOCOL OUT"},
};

static strid ufs_command_name(const struct ftrace_event *e, uint32_t code, uint32_t group)
{
    const char *name = "UNDEFINED";
    for (size_t i = 0; i < sizeof ufs_commands / sizeof *ufs_commands; i++)
        if (ufs_commands[i].code == code)
            name = ufs_commands[i].name;
    return group ? ftrace_name(e, "%s (GID=0x%x)", name, group) : ftrace_text(e, name);
}

static void ufshcd_command(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t doorbell = field_u32(&f, FTRACE_UFSHCD_COMMAND_DOORBELL), tag = field_u32(&f, FTRACE_UFSHCD_COMMAND_TAG),
             stage = field_u32(&f, FTRACE_UFSHCD_COMMAND_STR_T);
    double busy = doorbell ? __builtin_popcount(doorbell) : stage == 1 ? 0 : 1;
    ftrace_counter(
        e, ftrace_track(e, TRACK_COUNTER, "ufs_command_count", ftrace_text(e, "io.ufs.command.count"), NULL, 0), busy);
    uint32_t track = FTRACE_TRACK(e, TRACK_SLICE, "ufs_command_tag", ftrace_name(e, "io.ufs.command.tag[%03u]", tag),
                                  DIM_I("ufs_tag", tag));
    if (stage == 0)
        ftrace_begin(e, track, 0,
                     ufs_command_name(e, field_u32(&f, FTRACE_UFSHCD_COMMAND_OPCODE),
                                      field_u32(&f, FTRACE_UFSHCD_COMMAND_GROUP_ID)),
                     ARGSET_NONE);
    else
        ftrace_end(e, track, 0, 0, NULL);
}

/* The kernel's states are OFF, ON, REQ_OFF, REQ_ON; the counter has them in the order of power. */
static void ufshcd_clk_gating(const struct ftrace_event *e)
{
    static const uint8_t order[] = {0, 3, 1, 2};
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t state = field_u32(&f, FTRACE_UFSHCD_CLK_GATING_STATE);
    uint32_t track = ftrace_track(e, TRACK_COUNTER, "ufs_clkgating",
                                  ftrace_text(e, "io.ufs.clkgating (OFF:0/REQ_OFF/REQ_ON/ON:3)"), NULL, 0);
    ftrace_counter(e, track, state < sizeof order ? order[state] : 0);
}

const struct ftrace_handler ftrace_handlers_block[] = {
    {FTRACE_EVENT_F2FS_WRITE_CHECKPOINT, "f2fs_write_checkpoint", f2fs_write_checkpoint},
    {FTRACE_EVENT_UFSHCD_COMMAND, "ufshcd_command", ufshcd_command},
    {FTRACE_EVENT_UFSHCD_CLK_GATING, "ufshcd_clk_gating", ufshcd_clk_gating},
    {FTRACE_EVENT_F2FS_IOSTAT, "f2fs_iostat", f2fs_iostat},
    {FTRACE_EVENT_F2FS_IOSTAT_LATENCY, "f2fs_iostat_latency", f2fs_iostat_latency},
    {FTRACE_EVENT_ANDROID_FS_DATAREAD_END, "android_fs_dataread_end", dataread_end},
    {FTRACE_EVENT_ANDROID_FS_DATAREAD_START, "android_fs_dataread_start", dataread_start},
    {FTRACE_EVENT_BLOCK_IO_START, "block_io_start", block_io_start},
    {FTRACE_EVENT_BLOCK_IO_DONE, "block_io_done", block_io_done},
    {0, NULL, NULL},
};
