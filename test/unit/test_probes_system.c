/* Tests the data sources that read /proc and /sys, on this machine and on made-up files. */
#include "ck_slice.h"
#include "made_up_files.h"
#include "probes_fixture.h"

#include "capture/probes/proc_status.h"
#include "capture/probes/watchdog.h"
#include "wire/fields.h"

#include <sys/prctl.h>
#include <sys/times.h>
#include <sys/wait.h>

/* ---- helpers ---- */

/* The n-th submessage `id` of a message. */
static struct slice nth(struct slice message, uint32_t id, unsigned n)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == id && n-- == 0)
            return pb_bytes(&f);
    return slice_of(NULL, 0);
}

static unsigned count(struct slice message, uint32_t id)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    unsigned n = 0;
    while (pb_next(&c, &f))
        n += f.id == id;
    return n;
}

static void run_source(struct test_session *s, struct test_host *t, const struct data_source_type *type,
                       const struct pb_writer *config, unsigned ms)
{
    struct error err = {0};
    ck_assert_msg(test_session_start(s, t, type, pb_written(config), &err) == 0, "%s", err.text);
    if (ms)
        test_host_run(t, ms);
}

static void end_source(struct test_session *s, struct test_host *t, struct pb_writer *config)
{
    test_session_stop(s);
    pb_writer_free(config);
    memory_sink_free(&s->sink);
    test_host_free(t);
}

/* ---- process_stats ---- */

START_TEST(status_files_are_read)
{
    char text[] =
        "Name:\tmy (odd) name\nUmask:\t0022\nTgid:\t100\nPid:\t101\nPPid:\t7\nUid:\t1000\t1001\t1000\t1000\n"
        "NSpid:\t101\t5\t1\nKthread:\t0\nVmSize:\t    3060 kB\nVmHWM:\t 12 kB\nVmRSS:\t    1716 kB\nVmSwap:\t0 kB\n";
    char stat[] = "101 (a) b) S 7 1 1 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0 12345 1 2 3\n";
    struct proc_status s;
    struct proc_times times;
    proc_status_parse(text, &s);
    ck_assert_str_eq(s.name, "my (odd) name");
    ck_assert_int_eq(s.tgid, 100);
    ck_assert_int_eq(s.pid, 101);
    ck_assert_int_eq(s.ppid, 7);
    ck_assert_uint_eq(s.uid, 1000);
    ck_assert_int_eq(s.kthread, 0);
    ck_assert_uint_eq(s.n_ns, 3);
    ck_assert_int_eq(s.ns_pid[2], 1);
    ck_assert_uint_eq(s.memory_kb[PROC_VM_RSS], 1716);
    ck_assert_uint_eq(s.memory_kb[PROC_VM_HWM], 12);
    ck_assert(s.memory_present & 1u << PROC_VM_SWAP);
    ck_assert(!(s.memory_present & 1u << PROC_RSS_ANON));
    ck_assert(proc_times_parse(stat, 100, &times));
    ck_assert_uint_eq(times.user_ns, 2500000000);
    ck_assert_uint_eq(times.kernel_ns, 500000000);
    ck_assert_uint_eq(times.start_from_boot_ns, 123450000000);
}
END_TEST

START_TEST(control_groups_are_read)
{
    static const char *const cases[][2] = {
        {"0::/system.slice/ssh.service\n", "/system.slice/ssh.service"},
        {"0::/\n", "/"},
        {"12:pids:/docker/a\n1:name=systemd:/docker/ab\n0::/\n", "/docker/ab"},
        {"12:pids:/docker/a\n2:cpu,cpuacct:/\n", "/docker/a"},
        {"1:name=systemd:/x\n0::/a:b\n", "/a:b"},
        {"1:name=systemd:/\n3:memory:/long/er\n", "/long/er"},
        {"0::/../../elsewhere\n", "/../../elsewhere"},
        {"", ""},
        {"nonsense\n0:\n0::\n:::\n", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        ck_assert_str_eq(proc_cgroup_parse(text), cases[i][1]);
    }
}
END_TEST

/* The process message of `pid` in any packet. */
static struct slice find_process(const struct memory_sink *m, int32_t pid, unsigned *times)
{
    struct slice found = {NULL, 0};
    *times = 0;
    for (size_t i = 0; i < memory_sink_count(m); i++) {
        struct slice tree = memory_sink_field(m, i, 2);
        for (unsigned k = 0; k < count(tree, 1); k++) {
            struct slice p = nth(tree, 1, k);
            if ((int32_t)message_u64(p, 1) == pid) {
                found = p;
                ++*times;
            }
        }
    }
    return found;
}

static bool has_thread(const struct memory_sink *m, int32_t tid, int32_t tgid, const char *name)
{
    for (size_t i = 0; i < memory_sink_count(m); i++) {
        struct slice tree = memory_sink_field(m, i, 2);
        for (unsigned k = 0; k < count(tree, 2); k++) {
            struct slice p = nth(tree, 2, k);
            if ((int32_t)message_u64(p, 1) == tid && (int32_t)message_u64(p, 3) == tgid &&
                (!name || slice_eq_str(message_bytes(p, 2), name)))
                return true;
        }
    }
    return false;
}

START_TEST(the_scan_finds_this_process)
{
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    unsigned times;
    prctl(PR_SET_NAME, "mrd-test-name");
    pb_put_varint(&c, 2, 1);
    pb_put_varint(&c, 3, 1);
    pb_put_varint(&c, 11, 1);
    run_source(&s, t, &process_stats_data_source, &c, 0);
    struct slice p = find_process(&s.sink, getpid(), &times);
    ck_assert_uint_eq(times, 1);
    ck_assert_int_eq((int32_t)message_u64(p, 2), getppid());
    ck_assert_uint_eq(message_u64(p, 5), getuid());
    ck_assert_uint_gt(count(p, 3), 0);
    ck_assert_uint_gt(message_u64(p, 7), 0);
    struct slice cgroup = message_bytes(p, PROCESS_TREE_PROCESS_CGROUP);
    ck_assert(access("/proc/self/cgroup", R_OK) != 0 || slice_starts(cgroup, "/"));
    ck_assert_uint_lt(message_u64(p, 7), probes_boot_ns());
    ck_assert(has_thread(&s.sink, getpid(), getpid(), "mrd-test-name"));
    ck_assert(message_has(memory_sink_field(&s.sink, 0, 2), 3));
    /* known already: nothing new; after a rename it is told again */
    size_t n = memory_sink_count(&s.sink);
    int32_t self = getpid();
    s.type->new_tids(s.state, &self, 1);
    ck_assert_uint_eq(memory_sink_count(&s.sink), n);
    s.type->stale_tids(s.state, &self, 1);
    prctl(PR_SET_NAME, "mrd-other-name");
    s.type->new_tids(s.state, &self, 1);
    ck_assert_uint_eq(memory_sink_count(&s.sink), n + 1);
    ck_assert(has_thread(&s.sink, getpid(), getpid(), "mrd-other-name"));
    /* cleared: everything again, marked */
    s.type->clear_incremental(s.state);
    find_process(&s.sink, getpid(), &times);
    ck_assert_uint_eq(times, 3);
    ck_assert_uint_eq(message_u64(memory_sink_packet(&s.sink, n + 1), 41), 1);
    end_source(&s, t, &c);
}
END_TEST

START_TEST(quirks_switch_parts_off)
{
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    int32_t self = getpid();
    pb_put_varint(&c, 1, 1);
    pb_put_varint(&c, 1, 2);
    pb_put_varint(&c, 2, 1);
    run_source(&s, t, &process_stats_data_source, &c, 0);
    s.type->new_tids(s.state, &self, 1);
    ck_assert_uint_eq(memory_sink_count(&s.sink), 0);
    end_source(&s, t, &c);
}
END_TEST

/* One setting each, by the field of the packets that it brings or takes away. */
static const struct {
    uint32_t setting, value;
    uint32_t list, entry; /* of the packet, of the list: process tree or process stats */
    uint32_t field;       /* of the entry of this process */
    bool there;           /* with the setting; without it the opposite */
} process_settings[] = {
    {3, 1, 2, 2, 2, true},   /* record_thread_names */
    {11, 1, 2, 1, 7, true},  /* record_process_age */
    {14, 1, 2, 2, 1, false}, /* skip_main_thread_message */
    {9, 1, 9, 1, 15, true},  /* resolve_process_fds */
    {10, 1, 9, 1, 16, true}, /* scan_smaps_rollup */
    {12, 1, 9, 1, 21, true}, /* record_process_runtime: user, */
    {12, 1, 9, 1, 22, true}, /* kernel */
};

static bool process_field(uint32_t setting, uint32_t value, uint32_t list, uint32_t entry, uint32_t field)
{
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    bool found = false;
    pb_put_varint(&c, 2, 1);
    pb_put_varint(&c, 4, 100);
    pb_put_varint(&c, setting, value);
    run_source(&s, t, &process_stats_data_source, &c, 0);
    for (size_t i = 0; i < memory_sink_count(&s.sink); i++) {
        struct slice l = memory_sink_field(&s.sink, i, list);
        for (unsigned k = 0; k < count(l, entry); k++)
            if ((int32_t)message_u64(nth(l, entry, k), 1) == getpid())
                found |= message_has(nth(l, entry, k), field);
    }
    end_source(&s, t, &c);
    return found;
}

START_TEST(each_setting_of_process_stats)
{
    struct tms used = {0};
    while (used.tms_utime < 2 || used.tms_stime < 2) { /* processor time of both kinds to tell of */
        for (int i = 0; i < 100; i++)
            ck_assert_int_eq(close(open("/proc/self/status", O_RDONLY)), 0);
        for (volatile int i = 0; i < 100000; i++)
            ;
        ck_assert_int_ne(times(&used), (clock_t)-1);
    }
    uint32_t setting = process_settings[_i].setting, list = process_settings[_i].list;
    uint32_t entry = process_settings[_i].entry, field = process_settings[_i].field;
    bool with = process_field(setting, process_settings[_i].value, list, entry, field);
    bool without = process_field(setting, 0, list, entry, field);
    ck_assert_int_eq(with, process_settings[_i].there);
    ck_assert_int_eq(without, !process_settings[_i].there);
}
END_TEST

/* proc_stats_cache_ttl_ms: what has not changed is told again; and what this kernel does not have is told to be left
 * out. */
START_TEST(old_values_are_told_again)
{
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    unsigned times = 0;
    pb_put_varint(&c, 4, 100);
    pb_put_varint(&c, 6, 100);
    pb_put_varint(&c, 13, 1);
    run_source(&s, t, &process_stats_data_source, &c, 450);
    for (size_t i = 0; i < memory_sink_count(&s.sink); i++) {
        struct slice stats = memory_sink_field(&s.sink, i, 9);
        for (unsigned k = 0; k < count(stats, 1); k++)
            times += (int32_t)message_u64(nth(stats, 1, k), 1) == getpid() && message_has(nth(stats, 1, k), 2);
    }
    ck_assert_uint_ge(times, 3);
    ck_assert_ptr_nonnull(strstr(t->last_log, "record_process_dmabuf_rss"));
    end_source(&s, t, &c);
}
END_TEST

START_TEST(counters_are_told_when_they_change)
{
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    unsigned rss = 0, size = 0;
    pb_put_varint(&c, 4, 100);
    pb_put_varint(&c, 9, 1);
    pb_put_varint(&c, 12, 1);
    run_source(&s, t, &process_stats_data_source, &c, 250);
    volatile char *p = malloc(30 << 20);
    for (size_t i = 0; i < 30u << 20; i += 4096)
        p[i] = 1;
    test_host_run(t, 250);
    uint64_t first = 0, last = 0;
    bool fds = false;
    for (size_t i = 0; i < memory_sink_count(&s.sink); i++) {
        struct slice stats = memory_sink_field(&s.sink, i, 9);
        for (unsigned k = 0; k < count(stats, 1); k++) {
            struct slice m = nth(stats, 1, k);
            if ((int32_t)message_u64(m, 1) != getpid())
                continue;
            fds |= message_has(m, 15);
            size += message_has(m, 2);
            if (message_has(m, 3)) {
                rss++;
                first = first ? first : message_u64(m, 3);
                last = message_u64(m, 3);
            }
        }
    }
    ck_assert(fds);
    ck_assert_uint_ge(last, first + 10000);
    ck_assert_uint_lt(size, memory_sink_count(&s.sink)); /* not in every packet */
    free((void *)(uintptr_t)p);
    end_source(&s, t, &c);
}
END_TEST

/* ---- sys_stats and system_info on made-up files ---- */

START_TEST(every_group_of_sys_stats)
{
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    make_root();
    make_file("/proc/meminfo", "MemTotal:  100 kB\nMemFree: 40 kB\nActive(anon): 7 kB\nOther: 3 kB\n");
    make_file("/proc/vmstat", "nr_free_pages 11\npgfault 22\nunheard_of 1\n");
    make_file("/proc/stat",
              "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 30 10 0 20\nctxt 1\nprocesses 77\n"
              "softirq 9 4 5\n");
    make_file("/proc/buddyinfo", "Node 0, zone   DMA32      1      2      3 \n");
    make_file("/proc/diskstats", " 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                                 " 254 0 vda 1 2 300 4 5 6 700 8 9 10 11 12 13 1400 15 16 17\n");
    make_file("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 total=3\n");
    make_file("/proc/pressure/io", "some avg10=0.00 total=5\n");
    make_file("/proc/slabinfo", "slabinfo - version: 2.1\n# name <x>\n"
                                "dentry 10 20 192 21 2 : tunables 0 0 0 : slabdata 55 66 0\n");
    make_file("/sys/class/devfreq/gpu/cur_freq", "800000\n");
    make_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1800000\n");
    make_file("/sys/devices/system/cpu/cpu1/online", "1\n");
    make_file("/sys/devices/system/cpu/cpu10/cpufreq/scaling_cur_freq", "2200000\n");
    make_file("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    make_file("/sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n");
    make_file("/sys/devices/system/cpu/cpu0/cpuidle/state1/time", "123456\n");
    make_file("/sys/class/thermal/thermal_zone0/temp", "45500\n");
    make_file("/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    make_file("/sys/class/drm/card0/gt_act_freq_mhz", "350\n");
    t->host.sysroot = made_up;
    for (uint32_t field = 1; field <= 15; field++)
        if (field != 2 && field != 4 && field != 6)
            pb_put_varint(&c, field, 10000);
    pb_put_varint(&c, 2, 1);  /* MemTotal */
    pb_put_varint(&c, 2, 9);  /* Active(anon) */
    pb_put_varint(&c, 4, 49); /* pgfault */
    run_source(&s, t, &sys_stats_data_source, &c, 0);
    ck_assert_uint_eq(memory_sink_count(&s.sink), 1);
    struct slice m = memory_sink_field(&s.sink, 0, 7);
    ck_assert_uint_eq(count(m, 1), 2);
    ck_assert_uint_eq(message_u64(nth(m, 1, 1), 1), 9);
    ck_assert_uint_eq(message_u64(nth(m, 1, 1), 2), 7);
    ck_assert_uint_eq(count(m, 2), 1);
    ck_assert_uint_eq(message_u64(nth(m, 2, 0), 2), 22);
    struct slice cpu = nth(m, 3, 0);
    ck_assert_uint_eq(count(m, 3), 1);
    ck_assert_uint_eq(message_u64(cpu, 2), 1 * tick);
    ck_assert_uint_eq(message_u64(cpu, 9), 8 * tick);
    ck_assert_uint_eq(message_u64(m, 4), 77);
    ck_assert_uint_eq(message_u64(m, 5), 30);
    ck_assert_uint_eq(count(m, 6), 2);
    ck_assert_uint_eq(message_u64(nth(m, 6, 1), 1), 2);
    ck_assert_uint_eq(message_u64(nth(m, 6, 1), 2), 20);
    ck_assert_uint_eq(message_u64(m, 7), 9);
    ck_assert_uint_eq(count(m, 8), 2);
    ck_assert_uint_ge(message_u64(m, 9), message_u64(memory_sink_packet(&s.sink, 0), 8));
    ck_assert_slice_eq(message_bytes(nth(m, 10, 0), 1), "gpu");
    ck_assert_uint_eq(message_u64(nth(m, 10, 0), 2), 800000);
    ck_assert_uint_eq(count(m, 11), 3); /* cpu0, cpu1 (unknown: 0), cpu10; not "cpufreq" */
    struct slice buddy = nth(m, 12, 0);
    ck_assert_slice_eq(message_bytes(buddy, 1), "0");
    ck_assert_slice_eq(message_bytes(buddy, 2), "DMA32");
    ck_assert_uint_eq(count(buddy, 3), 3);
    ck_assert_uint_eq(count(m, 13), 1); /* the disk that was used */
    struct slice disk = nth(m, 13, 0);
    ck_assert_slice_eq(message_bytes(disk, 1), "vda");
    static const uint64_t numbers[] = {300, 4, 700, 8, 1400, 15, 16, 17};
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_uint_eq(message_u64(disk, 2 + i), numbers[i]);
    ck_assert_uint_eq(count(m, 14), 3);
    ck_assert_uint_eq(message_u64(nth(m, 14, 1), 1), 2);
    ck_assert_uint_eq(message_u64(nth(m, 14, 0), 2), 12000);
    ck_assert_uint_eq(message_u64(nth(m, 15, 0), 2), 45);
    ck_assert_slice_eq(message_bytes(nth(m, 15, 0), 3), "x86_pkg_temp");
    ck_assert_uint_eq(count(m, 16), 1);
    ck_assert_uint_eq(message_u64(nth(nth(m, 16, 0), 2, 0), 2), 123456);
    ck_assert_uint_eq(message_u64(m, 17), 350);
    ck_assert_uint_eq(message_u64(nth(m, 18, 0), 2), 2);
    ck_assert_uint_eq(message_u64(nth(m, 18, 0), 3), 66);
    end_source(&s, t, &c);
    remove_root();
}
END_TEST

START_TEST(sys_stats_tick)
{
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    pb_put_varint(&c, 5, 50);
    pb_put_varint(&c, 6, 4);
    pb_put_varint(&c, 1, 100);
    pb_put_varint(&c, 2, 2);
    run_source(&s, t, &sys_stats_data_source, &c, 520);
    size_t n = memory_sink_count(&s.sink), both = 0;
    for (size_t i = 0; i < n; i++)
        both += message_has(memory_sink_field(&s.sink, i, 7), 1);
    ck_assert_uint_ge(n, 7);
    ck_assert_uint_le(n, 12);
    ck_assert_uint_eq(both, (n + 1) / 2);
    end_source(&s, t, &c);
}
END_TEST

START_TEST(processors_and_interrupts)
{
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    make_root();
    make_file("/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
                               "Features\t: fp asimd mte atomics mte3 mte9\n\n"
                               "processor\t: 1\nmodel name\t: Fast One\n");
    make_file("/proc/interrupts",
              "           CPU0       CPU1\n  1:   5   6  IO-APIC   1-edge      i8042\nNMI:  0  0  Non\n");
    make_file("/sys/devices/system/cpu/cpu0/cpu_capacity", "512\n");
    make_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_available_frequencies", "100 200 \n");
    t->host.sysroot = made_up;
    pb_put_varint(&c, 1, 1);
    run_source(&s, t, &system_info_data_source, &c, 0);
    ck_assert_uint_eq(memory_sink_count(&s.sink), 2);
    struct slice info = memory_sink_field(&s.sink, 0, 67);
    ck_assert_uint_eq(count(info, 1), 2);
    struct slice cpu = nth(info, 1, 0);
    ck_assert_uint_eq(message_u64(cpu, 3), 512);
    ck_assert_uint_eq(count(cpu, 2), 2);
    ck_assert_uint_eq(message_u64(message_bytes(cpu, 4), 1), 0x41);
    ck_assert_uint_eq(message_u64(message_bytes(cpu, 4), 4), 0xd0c);
    ck_assert_uint_eq(message_u64(cpu, 5), 3); /* mte, mte3 */
    ck_assert_slice_eq(message_bytes(nth(info, 1, 1), 1), "Fast One");
    ck_assert(!message_has(nth(info, 1, 1), 5));
    struct slice irqs = memory_sink_field(&s.sink, 1, 130);
    ck_assert_uint_eq(count(irqs, 1), 1);
    ck_assert_slice_eq(message_bytes(nth(irqs, 1, 0), 2), "IO-APIC   1-edge      i8042");
    end_source(&s, t, &c);
    remove_root();
}
END_TEST

/* ---- sysfs_power ---- */

static void make_battery(const char *name, const char *type)
{
    static const char *const files[][2] = {{"capacity", "83\n"},
                                           {"charge_now", "2400000\n"},
                                           {"current_now", "-51234\n"},
                                           {"voltage_now", "11980000\n"},
                                           {"energy_now", "no number\n"}};
    char path[200];
    snprintf(path, sizeof path, "/sys/class/power_supply/%s/type", name);
    make_file(path, type);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "/sys/class/power_supply/%s/%s", name, files[i][0]);
        make_file(path, files[i][1]);
    }
}

static float message_float(struct slice message, uint32_t id)
{
    struct pb_field f;
    return pb_find(message, id, &f) ? pb_float(&f) : 0;
}

START_TEST(batteries)
{
    static const struct {
        unsigned batteries;
        uint32_t counter; /* 0: all */
    } rows[] = {{1, 0}, {2, 0}, {1, 2}, {0, 0}};
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    struct error err = {0};
    make_root();
    make_battery("AC", "Mains\n");
    for (unsigned i = 0; i < rows[_i].batteries; i++)
        make_battery(i ? "BAT1" : "BAT0", "Battery\n");
    t->host.sysroot = made_up;
    if (rows[_i].counter)
        pb_put_varint(&c, 2, rows[_i].counter);
    pb_put_varint(&c, 3, 1); /* power rails: told to be left out */
    int rc = test_session_start(&s, t, &sysfs_power_data_source, pb_written(&c), &err);
    ck_assert_int_eq(rc, rows[_i].batteries ? 0 : -MRD_ENOTFOUND);
    ck_assert_ptr_nonnull(strstr(t->last_log, "power rails"));
    ck_assert_uint_eq(memory_sink_count(&s.sink), rows[_i].batteries);
    if (rc == 0) {
        struct slice b = memory_sink_field(&s.sink, 0, 38);
        ck_assert_float_eq(message_float(b, 2), 83);
        ck_assert_int_eq((int64_t)message_u64(b, 1), rows[_i].counter ? 0 : 2400000);
        ck_assert_int_eq((int64_t)message_u64(b, 3), rows[_i].counter ? 0 : -51234);
        ck_assert_int_eq((int64_t)message_u64(b, 7), rows[_i].counter ? 0 : 11980000);
        ck_assert_int_eq(message_has(b, 5), rows[_i].batteries > 1); /* the name, where there are several */
        ck_assert(!message_has(b, 6));
    }
    end_source(&s, t, &c);
    remove_root();
}
END_TEST

/* ---- watchdog ---- */

static void stand_still(uv_timer_t *timer)
{
    uv_timer_stop(timer);
    for (uint64_t until = uv_hrtime() + 1300000000; uv_hrtime() < until;)
        usleep(10000);
}

static void run_a_still_loop(uint32_t limit_ms, bool watched)
{
    uv_loop_t loop;
    uv_timer_t timer;
    struct watchdog w;
    uv_loop_init(&loop);
    watchdog_start(&w, &loop, (struct watchdog_limits){.stuck_ms = limit_ms, .period_ms = 50});
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, stand_still, 150, 0);
    if (!watched)
        watchdog_stop(&w);
    uv_run(&loop, UV_RUN_DEFAULT);
    if (watched)
        watchdog_stop(&w);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

START_TEST(a_loop_that_stands_still_is_ended) /* by the kernel */
{
    run_a_still_loop(800, true);
}
END_TEST

START_TEST(a_loop_that_may_go_on)
{
    run_a_still_loop(_i == 0 ? 0 : 800, _i == 0); /* without a limit; no longer watched */
}
END_TEST

static void end_loop(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

/* As by SIGSTOP, a debugger, the freezer of a control group, or with the whole of a virtual machine. */
START_TEST(a_recorder_that_was_stopped_goes_on)
{
    int status;
    pid_t recorder = fork();
    if (recorder == 0) {
        uv_loop_t loop;
        uv_timer_t timer;
        struct watchdog w;
        uv_loop_init(&loop);
        watchdog_start(&w, &loop, (struct watchdog_limits){.stuck_ms = 800, .period_ms = 50});
        uv_timer_init(&loop, &timer);
        uv_timer_start(&timer, end_loop, 3000, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
        _exit(0);
    }
    usleep(300000);
    for (int i = 0; i < 2; i++) {
        kill(recorder, SIGSTOP);
        usleep(i ? 200000 : 1500000);
        kill(recorder, SIGCONT);
        usleep(100000);
    }
    ck_assert_int_eq(waitpid(recorder, &status, 0), recorder);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(memory_is_measured)
{
    uint32_t before = watchdog_memory_mb();
    char *p = malloc(40 << 20);
    memset(p, 1, 40 << 20);
    uint32_t after = watchdog_memory_mb();
    ck_assert_uint_gt(before, 0);
    ck_assert_uint_ge(after, before + 38);
    ck_assert_int_eq(p[rand() % 100], 1);
    free(p);
}
END_TEST

/* ---- inode_file_map ---- */

START_TEST(paths_of_inodes)
{
    struct test_session s;
    struct pb_writer c = {0};
    struct stat st;
    char path[200];
    make_root();
    make_file("/deep/er/file.txt", "x");
    snprintf(path, sizeof path, "%s/deep/er/file.txt", made_up);
    ck_assert_int_eq(stat(path, &st), 0);
    struct inode_key keys[] = {{st.st_dev, st.st_ino}, {1234567, 5}};
    FILE *mounts = fopen("/proc/self/mountinfo", "r");
    char line[1024], mount[300] = "", best[300] = "";
    unsigned major, minor;
    while (mounts && fgets(line, sizeof line, mounts))
        if (sscanf(line, "%*d %*d %u:%u / %299s", &major, &minor, mount) == 3 &&
            ((uint64_t)minor & 0xff) == (st.st_dev & 0xff) && strncmp(path, mount, strlen(mount)) == 0)
            strcpy(best, mount);
    fclose(mounts);
    if (!*best) {
        remove_root();
        SKIP("the mount of %s is not in mountinfo as a whole", path);
    }
    struct test_host *t = test_host_new(RING_READ);
    pb_put_varint(&c, 2, 1); /* no delay */
    size_t m = pb_begin(&c, 6);
    pb_put_str(&c, 1, best);
    pb_put_str(&c, 2, made_up);
    pb_end(&c, m);
    run_source(&s, t, &inode_file_map_data_source, &c, 0);
    s.type->new_inodes(s.state, keys, 2);
    test_host_run(t, 100);
    ck_assert_uint_eq(memory_sink_count(&s.sink), 1);
    struct slice map = memory_sink_field(&s.sink, 0, 4);
    ck_assert_uint_eq(message_u64(map, 1), st.st_dev);
    ck_assert_uint_eq(message_u64(message_bytes(map, 3), 1), st.st_ino);
    ck_assert_slice_eq(message_bytes(message_bytes(map, 3), 2), path);
    ck_assert_uint_eq(message_u64(message_bytes(map, 3), 3), 1);
    end_source(&s, t, &c);
    remove_root();
}
END_TEST

/* ---- metatrace ---- */

START_TEST(metatrace_tells_spans_and_overruns)
{
    struct test_host *t = test_host_new(RING_READ);
    struct test_session s;
    struct pb_writer c = {0};
    metatrace_end(&t->metatrace, metatrace_begin(&t->metatrace), "before"); /* nobody records */
    run_source(&s, t, &metatrace_data_source, &c, 0);
    metatrace_end(&t->metatrace, metatrace_begin(&t->metatrace), "work");
    metatrace_counter(&t->metatrace, "depth", -3);
    s.type->flush(s.state);
    ck_assert_uint_eq(memory_sink_count(&s.sink), 2);
    struct slice m = memory_sink_field(&s.sink, 0, 49);
    ck_assert_slice_eq(message_bytes(m, 8), "work");
    ck_assert(message_has(m, 3));
    ck_assert_int_eq((int32_t)message_u64(memory_sink_field(&s.sink, 1, 49), 4), -3);
    for (int i = 0; i < METATRACE_RING + 10; i++)
        metatrace_counter(&t->metatrace, "n", i);
    s.type->flush(s.state);
    ck_assert_uint_eq(memory_sink_count(&s.sink), 2 + METATRACE_RING);
    ck_assert_uint_eq(message_u64(memory_sink_field(&s.sink, 2, 49), 6), 1);
    ck_assert_uint_eq(message_u64(memory_sink_field(&s.sink, 2, 49), 4), 10);
    ck_assert(!message_has(memory_sink_field(&s.sink, 3, 49), 6));
    test_session_stop(&s);
    ck_assert_uint_eq(t->metatrace.users, 0);
    memory_sink_free(&s.sink);
    test_host_free(t);
}
END_TEST

Suite *probes_system_suite(void);
Suite *probes_system_suite(void)
{
    Suite *s = suite_create("probes_system");
    TCase *c = tcase_create("system");
    tcase_set_timeout(c, 30);
    tcase_add_test(c, status_files_are_read);
    tcase_add_test(c, control_groups_are_read);
    tcase_add_test(c, the_scan_finds_this_process);
    tcase_add_test(c, quirks_switch_parts_off);
    tcase_add_loop_test(c, each_setting_of_process_stats, 0, (int)(sizeof process_settings / sizeof *process_settings));
    tcase_add_test(c, old_values_are_told_again);
    tcase_add_test(c, counters_are_told_when_they_change);
    tcase_add_test(c, every_group_of_sys_stats);
    tcase_add_test(c, sys_stats_tick);
    tcase_add_test(c, processors_and_interrupts);
    tcase_add_loop_test(c, batteries, 0, 4);
    tcase_add_test_raise_signal(c, a_loop_that_stands_still_is_ended, SIGALRM);
    tcase_add_loop_test(c, a_loop_that_may_go_on, 0, 2);
    tcase_add_test(c, a_recorder_that_was_stopped_goes_on);
    tcase_add_test(c, memory_is_measured);
    tcase_add_test(c, paths_of_inodes);
    tcase_add_test(c, metatrace_tells_spans_and_overruns);
    suite_add_tcase(s, c);
    return s;
}
