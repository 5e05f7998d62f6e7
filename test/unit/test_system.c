/* Tests what packets about the machine become: processes, counters, cpus, GPUs, power, the journal. */
#include "unit/pb_text.h"
#include "unit/trace_fixture.h"

static struct trace_fixture f;
static struct pb_writer *w;

static void setup(void)
{
    trace_fixture_open(&f);
    w = &f.w;
}

static void teardown(void)
{
    trace_fixture_close(&f);
}

#define ROWS(table)              (f.st.t[T_##table].n_rows)
#define GET(table, column, row)  ROW_GET(&f.st, table, column, row)
#define TEXT(table, column, row) fixture_text(&f, GET(table, column, row))
#define STAT(name)               stats_get(&f.st.stats, 0, STAT_##name)

static void process(int pid, int ppid, const char *arg0, const char *arg1)
{
    size_t p = pb_begin(w, 1);
    pb_put_i64(w, 1, pid);
    pb_put_i64(w, 2, ppid);
    if (arg0)
        pb_put_str(w, 3, arg0);
    if (arg1)
        pb_put_str(w, 3, arg1);
    pb_end(w, p);
}

static uint32_t process_row(int64_t pid)
{
    for (uint32_t i = 0; i < ROWS(process); i++)
        if (GET(process, pid, i) == pid)
            return i;
    ck_abort_msg("no process %lld", (long long)pid);
}

START_TEST(a_process_tree_names_processes_and_threads)
{
    packet_begin(&f, 10);
    size_t t = pb_begin(w, 2);
    process(7, 2, "kworker/0:1H-events_highpri", NULL);
    process(100, 1, "/usr/bin/app --in argv0", NULL);
    process(101, 100, "/usr/bin/app", "--flag");
    process(102, 100, NULL, NULL); /* nothing is known of it */
    size_t thread = pb_begin(w, 2);
    pb_put_varint(w, 1, 103);
    pb_put_str(w, 2, "pool");
    pb_put_varint(w, 3, 101);
    pb_end(w, thread);
    pb_end(w, t);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_str_eq(TEXT(process, name, process_row(7)), "kworker/0:1H");
    ck_assert_str_eq(TEXT(process, name, process_row(100)), "/usr/bin/app");
    ck_assert_str_eq(TEXT(process, cmdline, process_row(100)), "/usr/bin/app --in argv0");
    ck_assert_str_eq(TEXT(process, cmdline, process_row(101)), "/usr/bin/app --flag");
    ck_assert_int_eq(GET(process, parent_upid, process_row(101)), process_row(100));
    for (uint32_t i = 0; i < ROWS(process); i++)
        ck_assert_int_ne(GET(process, pid, i), 102);
    uint32_t last = ROWS(thread) - 1;
    ck_assert_str_eq(TEXT(thread, name, last), "pool");
    ck_assert_int_eq(GET(thread, upid, last), process_row(101));
}
END_TEST

static void keyed(uint32_t field, uint64_t key, uint64_t value)
{
    size_t e = pb_begin(w, field);
    pb_put_varint(w, 1, key);
    pb_put_varint(w, 2, value);
    pb_end(w, e);
}

START_TEST(system_counters_have_names_and_units)
{
    packet_begin(&f, 10);
    size_t s = pb_begin(w, 7);
    keyed(1, 2, 100);  /* MemFree, KiB */
    keyed(1, 999, 1);  /* unknown */
    keyed(2, 1, 7);    /* nr_free_pages */
    keyed(2, 9999, 7); /* unknown */
    keyed(14, 1, 50);  /* psi cpu.some */
    keyed(14, 99, 50); /* unknown */
    pb_put_varint(w, 4, 12);
    pb_put_varint(w, 11, 1000000);
    pb_put_varint(w, 11, 2000000);
    size_t buddy = pb_begin(w, 12);
    pb_put_str(w, 1, "0");
    pb_put_str(w, 2, "DMA");
    pb_put_varint(w, 3, 5);
    pb_put_varint(w, 3, 6);
    pb_end(w, buddy);
    size_t disk = pb_begin(w, 13);
    pb_put_str(w, 1, "vda");
    pb_put_varint(w, 2, 3);
    pb_end(w, disk);
    size_t times = pb_begin(w, 3); /* no cpu */
    pb_put_varint(w, 2, 3);
    pb_end(w, times);
    pb_end(w, s);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_double_eq(last_value(&f, "MemFree"), 102400);
    ck_assert_double_eq(last_value(&f, "nr_free_pages"), 7);
    ck_assert_double_eq(last_value(&f, "psi.cpu.some"), 50);
    ck_assert_double_eq(last_value(&f, "num_forks"), 12);
    ck_assert_double_eq(last_value(&f, "cpufreq"), 2000000);
    ck_assert_double_eq(last_value(&f, "mem.buddyinfo[0][DMA][8 kB]"), 6);
    ck_assert_int_eq(STAT(meminfo_unknown_keys), 1);
    ck_assert_int_eq(STAT(vmstat_unknown_keys), 1);
    ck_assert_int_eq(STAT(psi_unknown_resource), 1);
    ck_assert_int_eq(STAT(invalid_cpu_times), 1);
    ck_assert_int_eq(GET(cpu, cpu, 1), 1);
    ck_assert_int_eq(GET(cpu, cpu, 2), COL_NULL);
}
END_TEST

START_TEST(clusters_follow_frequency_and_capacity)
{
    static const uint32_t freqs[] = {300, 300, 100};
    packet_begin(&f, 10);
    size_t c = pb_begin(w, 67);
    for (int i = 0; i < 3; i++) {
        size_t cpu = pb_begin(w, 1);
        pb_put_str(w, 1, "core");
        pb_put_varint(w, 2, freqs[i] / 2);
        pb_put_varint(w, 2, freqs[i]);
        pb_end(w, cpu);
    }
    pb_end(w, c);
    packet_end(&f);
    packet_begin(&f, 11);
    pb_end(w, pb_begin(w, 67)); /* empty: counted */
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_int_eq(GET(cpu, cluster_id, 0), 1);
    ck_assert_int_eq(GET(cpu, cluster_id, 1), 1);
    ck_assert_int_eq(GET(cpu, cluster_id, 2), 0);
    ck_assert_uint_eq(ROWS(cpu_freq), 6);
    ck_assert_int_eq(STAT(cpu_info_empty), 1);
}
END_TEST

START_TEST(system_information_fills_the_machine)
{
    packet_begin(&f, 10);
    size_t s = pb_begin(w, 45), u = pb_begin(w, 1);
    pb_put_str(w, 1, "Linux");
    pb_put_str(w, 3, "6.1.0-56-cloud");
    pb_end(w, u);
    pb_put_varint(w, 8, 4);
    pb_put_varint(w, 16, 1500000000);
    pb_put_str(w, 17, "box");
    pb_end(w, s);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_str_eq(TEXT(machine, sysname, 0), "Linux");
    ck_assert_str_eq(TEXT(machine, name, 0), "box");
    ck_assert_int_eq(GET(machine, num_cpus, 0), 4);
    ck_assert_int_eq(GET(machine, system_ram_gb, 0), 2);
}
END_TEST

START_TEST(process_statistics_are_counters_and_files)
{
    packet_begin(&f, 10);
    size_t s = pb_begin(w, 9), p = pb_begin(w, 1);
    pb_put_varint(w, 1, 55);
    pb_put_varint(w, 3, 10);
    pb_put_i64(w, 10, -900);
    size_t fd = pb_begin(w, 15);
    pb_put_varint(w, 1, 3);
    pb_put_str(w, 2, "/dev/null");
    pb_end(w, fd);
    pb_put_varint(w, 63, 1); /* unknown */
    pb_end(w, p);
    pb_end(w, s);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_double_eq(last_value(&f, "mem.rss"), 10240);
    ck_assert_double_eq(last_value(&f, "oom_score_adj"), -900);
    ck_assert_uint_eq(ROWS(filedescriptor), 1);
    ck_assert_str_eq(TEXT(filedescriptor, path, 0), "/dev/null");
    ck_assert_int_eq(STAT(proc_stat_unknown_counters), 1);
}
END_TEST

/* The names are those of the words that the recorder reads; a description tells the word too. */
START_TEST(memory_of_processes_is_described)
{
    static const struct {
        uint32_t field;
        const char *name, *word;
    } want[] = {{2, "mem.virt", "VmSize"},
                {3, "mem.rss", "VmRSS"},
                {4, "mem.rss.anon", "RssAnon"},
                {5, "mem.rss.file", "RssFile"},
                {6, "mem.rss.shmem", "RssShmem"},
                {7, "mem.swap", "VmSwap"},
                {8, "mem.locked", "VmLck"},
                {9, "mem.rss.watermark", "VmHWM"},
                {16, "mem.smaps.rss", ": Rss of"},
                {17, "mem.smaps.pss", ": Pss of"},
                {18, "mem.smaps.pss.anon", "Pss_Anon"},
                {19, "mem.smaps.pss.file", "Pss_File"},
                {20, "mem.smaps.pss.smem", "Pss_Shmem"},
                {23, "mem.smaps.swap.pss", "SwapPss"},
                {24, "mem.dmabuf_rss", "record_process_dmabuf_rss"}};
    enum { N = sizeof want / sizeof *want, PROCESSES = 3 };
    packet_begin(&f, 10);
    size_t s = pb_begin(w, 9);
    for (int process = 0; process < PROCESSES; process++) {
        size_t p = pb_begin(w, 1);
        pb_put_varint(w, 1, 55 + (uint64_t)process);
        for (int i = 0; i < N; i++)
            pb_put_varint(w, want[i].field, want[i].field);
        pb_put_i64(w, 10, -900);
        pb_end(w, p);
    }
    pb_end(w, s);
    packet_end(&f);
    trace_fixture_load(&f);
    argset first[N];
    ck_assert_uint_eq(ROWS(track), PROCESSES * (N + 1));
    for (uint32_t i = 0; i < PROCESSES * (N + 1); i++) {
        uint32_t at = i % (N + 1);
        struct arg_list list = {0};
        argset set = ROW_ARGS(&f.st, track, source_arg_set_id, i);
        args_values(&f.st.args, set, &list);
        if (at == N) {
            ck_assert_str_eq(TEXT(track, name, i), "oom_score_adj");
            ck_assert(argset_is_none(set));
            continue;
        }
        ck_assert_str_eq(TEXT(track, name, i), want[at].name);
        ck_assert_double_eq(last_value(&f, want[at].name), want[at].field * 1024.0);
        ck_assert_uint_eq(list.n, 1);
        ck_assert_str_eq(strpool_cstr(&f.st.strings, list.p[0].key), "description");
        const char *description = strpool_cstr(&f.st.strings, (strid)list.p[0].word);
        ck_assert_msg(strstr(description, want[at].word) != NULL, "%s: %s", want[at].name, description);
        if (i < N)
            first[at] = set;
        ck_assert(argset_eq(first[at], set)); /* processes share it */
        arg_list_free(&list);
    }
}
END_TEST

START_TEST(gpu_counters_tell_of_the_time_before)
{
    for (int i = 0; i < 3; i++) {
        packet_begin(&f, 10 + i);
        size_t e = pb_begin(w, 52);
        if (i == 0) {
            size_t d = pb_begin(w, 1), s = pb_begin(w, 1);
            pb_put_varint(w, 1, 4);
            pb_put_str(w, 2, "busy");
            pb_put_varint(w, 7, 37); /* percent */
            pb_put_varint(w, 10, 6); /* compute */
            pb_end(w, s);
            s = pb_begin(w, 1); /* a spec without a name */
            pb_put_varint(w, 1, 5);
            pb_end(w, s);
            pb_end(w, d);
        }
        size_t c = pb_begin(w, 2);
        pb_put_varint(w, 1, 4);
        pb_put_varint(w, 2, (uint64_t)(100 + i));
        pb_end(w, c);
        c = pb_begin(w, 2);
        pb_put_varint(w, 1, 9); /* never described */
        pb_put_varint(w, 2, 1);
        pb_end(w, c);
        pb_end(w, e);
        packet_end(&f);
    }
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(counter), 3);
    ck_assert_double_eq(column_f64(GET(counter, value, 0)), 101);
    ck_assert_double_eq(column_f64(GET(counter, value, 1)), 102);
    ck_assert_double_eq(column_f64(GET(counter, value, 2)), 0);
    ck_assert_uint_eq(ROWS(gpu_counter_group), 1);
    ck_assert_int_eq(STAT(gpu_counters_invalid_spec), 1);
    ck_assert_int_eq(STAT(gpu_counters_missing_spec), 0); /* values of what nothing describes are left out */
}
END_TEST

START_TEST(power_has_its_own_times)
{
    packet_begin(&f, 5);
    size_t r = pb_begin(w, 40), d = pb_begin(w, 1);
    pb_put_varint(w, 1, 1);
    pb_put_str(w, 2, "RAIL");
    pb_end(w, d);
    for (int i = 0; i < 2; i++) {
        d = pb_begin(w, 2);
        pb_put_varint(w, 1, 1);
        pb_put_varint(w, 2, (uint64_t)(20 - i)); /* ms, falling */
        pb_put_varint(w, 3, (uint64_t)(500 + i));
        pb_end(w, d);
    }
    d = pb_begin(w, 2);
    pb_put_varint(w, 1, 77); /* nobody described it */
    pb_end(w, d);
    pb_end(w, r);
    packet_end(&f);
    packet_begin(&f, 30);
    size_t b = pb_begin(w, 38);
    pb_put_i64(w, 3, -1000);
    pb_put_i64(w, 7, 5000000);
    pb_put_i64(w, 6, 10);
    pb_end(w, b);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_double_eq(last_value(&f, "power.RAIL_uws"), 500); /* the later one */
    ck_assert_double_eq(last_value(&f, "batt.power_mw"), 5);
    ck_assert_double_eq(last_value(&f, "batt.charge_uah"), 2);
    ck_assert_int_eq(STAT(power_rail_unknown_index), 1);
}
END_TEST

/* The end of a rail's name tells its purpose; a sample says when its packet was made. */
START_TEST(rails_say_what_they_feed)
{
    put(w, "1{8:5 40{1{1:1 2'S2M_VDD_CPUCL2' 3'soc'} 1{1:2 2'S3M_VDD_CPUCL1_M'} 2{1:1 3:7} 2{1:2 3:8}}}");
    trace_fixture_load(&f);
    ck_assert(last_value(&f, "power.rails.cpu.big") == 7);
    ck_assert(last_value(&f, "power.rails.cpu.mid.mem") == 8);
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, counter, arg_set_id, 0)), "packet_ts=5");
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, track, source_arg_set_id, 0)),
                     "raw_name=S2M_VDD_CPUCL2 subsystem_name=soc");
}
END_TEST

START_TEST(energy_is_told_of_consumers_that_are_described)
{
    put(w, "1{8:5 77{2:1 3:100 4{1:7 2:50}}} 1{8:6 77{2:9 3:100}}"); /* 9: nobody describes it */
    put(w, "1{8:6 77{2:1 4{1:7 2:60}}}");                            /* no sum */
    put(w, "1{8:7 77{1{1{1:1 2:3 3'CPU' 4'big'}}}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(counter), 2);
    ck_assert(last_value(&f, "big") == 50); /* of user 7 */
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, track, source_arg_set_id, 0)), "consumer_type=CPU ordinal=3");
    ck_assert_int_eq(GET(track, source_arg_set_id, 1), COL_NULL); /* not of one user */
    ck_assert_int_eq(STAT(energy_breakdown_missing_values), 2);
}
END_TEST

START_TEST(the_journal_is_a_log)
{
    packet_begin(&f, 10);
    size_t j = pb_begin(w, 132);
    pb_put_varint(w, 1, 42);
    pb_put_varint(w, 2, 43);
    pb_put_varint(w, 5, 3);
    pb_put_str(w, 6, "sshd");
    pb_put_str(w, 7, "hello");
    pb_put_str(w, 10, "ssh.service");
    pb_end(w, j);
    packet_end(&f);
    packet_begin(&f, 11);
    j = pb_begin(w, 132);
    pb_put_varint(w, 20, 5);
    pb_put_varint(w, 21, 2);
    pb_end(w, j);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(logs), 1);
    ck_assert_str_eq(TEXT(logs, msg, 0), "hello");
    ck_assert_int_eq(GET(thread, tid, (uint32_t)GET(logs, utid, 0)), 43);
    ck_assert_int_eq(STAT(systemd_journal_num_failed), 2);
}
END_TEST

START_TEST(interrupts_have_names)
{
    packet_begin(&f, 10);
    size_t i = pb_begin(w, 130);
    size_t m = pb_begin(w, 1);
    pb_put_varint(w, 1, 9);
    pb_put_str(w, 2, "vgic");
    pb_end(w, m);
    pb_end(w, i);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(linux_interrupt_mapping), 1);
    ck_assert_str_eq(TEXT(linux_interrupt_mapping, name, 0), "vgic");
}
END_TEST

/* One field in front of the packet's, two in one packet, one very far behind, one that is no message. */
START_TEST(a_field_is_found_wherever_it_stands)
{
    enum { FAR = 9 << 20 };
    char *filler = malloc(FAR);
    ck_assert_ptr_nonnull(filler);
    memset(filler, 'x', FAR);
    put(w, "1{8:1 500'padding' 130{1{1:1 2'one'}}}");
    put(w, "1{130{1{1:2 2'two'}} 8:2 130{1{1:3 2'three'}} 501:7}");
    size_t packet = pb_begin(w, 1);
    pb_put_bytes(w, 500, filler, FAR);
    put(w, "8:3 130{1{1:4 2'far'}}");
    pb_end(w, packet);
    put(w, "1{8:4 130:77}");
    trace_fixture_load(&f);
    free(filler);
    ck_assert_uint_eq(ROWS(linux_interrupt_mapping), 4);
    static const char *const names[] = {"one", "two", "three", "far"};
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_str_eq(TEXT(linux_interrupt_mapping, name, i), names[i]);
        ck_assert_int_eq(GET(linux_interrupt_mapping, irq_id, i), i + 1);
    }
}
END_TEST

START_TEST(inodes_have_paths)
{
    packet_begin(&f, 10);
    put(w, "4{1:66305 2'/' 2'/home' 3{1:7 2'/etc/passwd' 3:1} 3{1:8 2'/a' 2'/b'}}");
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(inode_file), 3);
    ck_assert_int_eq(GET(inode_file, block_device_id, 0), 66305);
    ck_assert_str_eq(TEXT(inode_file, mount_points, 0), "/, /home");
    ck_assert_str_eq(TEXT(inode_file, path, 0), "/etc/passwd");
    ck_assert_str_eq(TEXT(inode_file, type, 0), "file");
    ck_assert_int_eq(GET(inode_file, inode, 2), 8);
    ck_assert_str_eq(TEXT(inode_file, path, 2), "/b");
    ck_assert_int_eq(GET(inode_file, type, 2), 0);
}
END_TEST

START_TEST(fingerprints_tell_the_android_version)
{
    put(w, "1{45{2'google/coral/coral:12/SP1A.210812.015/7679548:userdebug/dev-keys'}}");
    trace_fixture_load(&f);
    ck_assert_int_eq(GET(machine, android_sdk_version, 0), 31);
}
END_TEST

START_TEST(daemons_record_themselves)
{
    packet_begin(&f, 10);
    size_t m = pb_begin(w, 49);
    size_t s = pb_begin(w, 10);
    pb_put_varint(w, 1, 1);
    pb_put_str(w, 2, "drain");
    pb_end(w, s);
    pb_put_varint(w, 11, 1);
    pb_put_varint(w, 3, 25);
    pb_put_varint(w, 5, 77);
    pb_put_varint(w, 6, 1);
    pb_end(w, m);
    packet_end(&f);
    packet_begin(&f, 50);
    m = pb_begin(w, 49);
    pb_put_varint(w, 2, 3);
    pb_put_varint(w, 4, 12);
    pb_end(w, m);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 1);
    ck_assert_str_eq(TEXT(slice, name, 0), "drain");
    ck_assert_int_eq(GET(slice, dur, 0), 25);
    ck_assert_double_eq(last_value(&f, "Counter 3"), 12);
    ck_assert_int_eq(STAT(metatrace_overruns), 1);
}
END_TEST

START_TEST(perf_samples_bring_counters)
{
    packet_begin(&f, 10);
    size_t d = pb_begin(w, 59), p = pb_begin(w, 12), t = pb_begin(w, 1);
    pb_put_varint(w, 4, 10); /* HW_CPU_CYCLES */
    pb_end(w, t);
    t = pb_begin(w, 4); /* a follower */
    pb_put_str(w, 4, "misses");
    pb_end(w, t);
    pb_end(w, p);
    pb_end(w, d);
    size_t s = pb_begin(w, 66);
    pb_put_varint(w, 1, 2);
    pb_put_varint(w, 2, 30);
    pb_put_varint(w, 3, 31);
    pb_put_varint(w, 5, 1);
    pb_put_varint(w, 6, 1000);
    pb_put_varint(w, 7, 5);
    pb_end(w, s);
    packet_end(&f);
    packet_begin(&f, 20);
    s = pb_begin(w, 66); /* the kernel's ring was full: no sample */
    pb_put_varint(w, 1, 2);
    pb_put_varint(w, 17, 3);
    pb_end(w, s);
    packet_end(&f);
    for (unsigned reason = 1; reason <= 4; reason++) { /* READ_STAGE, UNWIND_STAGE, UNWIND_ENQUEUE, NOT_IN_SCOPE */
        packet_begin(&f, 20 + reason);
        s = pb_begin(w, 66);
        pb_put_varint(w, 1, 2);
        pb_put_varint(w, 6, 1000 * (reason + 1));
        pb_put_varint(w, 7, 5);
        pb_put_varint(w, 18, reason);
        pb_end(w, s);
        packet_end(&f);
    }
    trace_fixture_load(&f);
    ck_assert_double_eq(last_value(&f, "cpu-cycles"), 5000);
    ck_assert_double_eq(last_value(&f, "misses"), 5);
    ck_assert_uint_eq(ROWS(profiler_sample), 5);
    ck_assert_uint_eq(ROWS(profiler_counter_set), 10);
    ck_assert_str_eq(TEXT(profiler_execution_context, cpu_mode, 0), "kernel");
    ck_assert_int_eq(STAT(perf_samples_skipped), 2);
    ck_assert_int_eq(STAT(perf_samples_skipped_dataloss), 1);
    ck_assert_int_eq(*stats_get_idx(&f.st.stats, 0, STAT_perf_cpu_lost_records, 2), 3);
}
END_TEST

static void task_state(int64_t ts, int cpu, int tid, unsigned state)
{
    packet_begin(&f, ts);
    size_t s = pb_begin(w, 117);
    if (cpu >= 0)
        pb_put_varint(w, 1, (uint64_t)cpu);
    pb_put_varint(w, 3, (uint64_t)tid);
    pb_put_varint(w, 4, state);
    pb_end(w, s);
    packet_end(&f);
}

START_TEST(kernels_that_are_not_linux_schedule_too)
{
    task_state(10, 0, 5, 3);  /* runs */
    task_state(20, 0, 6, 3);  /* takes the cpu */
    task_state(20, -1, 5, 4); /* why the first lost it */
    task_state(30, 0, 6, 5);
    task_state(30, -1, 6, 4); /* two states at one time */
    task_state(40, 0, 6, 99);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(sched_slice), 2);
    ck_assert_int_eq(GET(sched_slice, dur, 0), 10);
    ck_assert_str_eq(TEXT(sched_slice, end_state, 0), "S");
    ck_assert_str_eq(TEXT(sched_slice, end_state, 1), "D");
    ck_assert_int_eq(STAT(generic_task_state_invalid_order), 1);
    ck_assert_int_eq(STAT(task_state_invalid), 1);
}
END_TEST

START_TEST(states_that_cannot_follow_are_dropped)
{
    task_state(10, -1, 5, 1); /* created */
    task_state(20, -1, 5, 1); /* again, while it is alive */
    task_state(30, 0, 5, 3);
    task_state(40, 1, 5, 3); /* runs already */
    task_state(50, -1, 5, 7);
    task_state(60, -1, 5, 4); /* after its death */
    task_state(70, -1, 5, 8);
    task_state(80, -1, 5, 1); /* another thread of that number */
    trace_fixture_load(&f);
    static const char *const states[] = {"Created", "Running", "Z", "X", "Created"};
    ck_assert_uint_eq(ROWS(thread_state), 5);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_str_eq(TEXT(thread_state, state, i), states[i]);
    ck_assert_uint_eq(ROWS(sched_slice), 1);
    ck_assert_int_eq(GET(sched_slice, dur, 0), 20);
    ck_assert_int_ne(GET(thread_state, utid, 4), GET(thread_state, utid, 3));
    ck_assert_int_eq(STAT(generic_task_state_invalid_order), 3);
}
END_TEST

Suite *system_suite(void);

Suite *system_suite(void)
{
    Suite *s = suite_create("system");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_process_tree_names_processes_and_threads);
    tcase_add_test(c, system_counters_have_names_and_units);
    tcase_add_test(c, clusters_follow_frequency_and_capacity);
    tcase_add_test(c, system_information_fills_the_machine);
    tcase_add_test(c, process_statistics_are_counters_and_files);
    tcase_add_test(c, memory_of_processes_is_described);
    tcase_add_test(c, gpu_counters_tell_of_the_time_before);
    tcase_add_test(c, power_has_its_own_times);
    tcase_add_test(c, rails_say_what_they_feed);
    tcase_add_test(c, energy_is_told_of_consumers_that_are_described);
    tcase_add_test(c, the_journal_is_a_log);
    tcase_add_test(c, interrupts_have_names);
    tcase_add_test(c, a_field_is_found_wherever_it_stands);
    tcase_add_test(c, inodes_have_paths);
    tcase_add_test(c, fingerprints_tell_the_android_version);
    tcase_add_test(c, daemons_record_themselves);
    tcase_add_test(c, perf_samples_bring_counters);
    tcase_add_test(c, kernels_that_are_not_linux_schedule_too);
    tcase_add_test(c, states_that_cannot_follow_are_dropped);
    suite_add_tcase(s, c);
    return s;
}
