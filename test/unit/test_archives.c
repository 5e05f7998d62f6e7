/* Tests archives that are damaged, or meant to do harm. */
#include "archive_fixture.h"

#include "wire/pb_cursor.h"

#include <unistd.h>
#include <zlib.h>

static int64_t damaged_members(const struct load *l)
{
    int64_t n = 0;
    for (int row = 0; row < 8; row++) {
        const int64_t *v = stats_get_idx(&l->st.stats, 0, STAT_archive_member_damaged, row);
        n += v ? *v : 0;
    }
    return n;
}

/* Each of three traces in turn is damaged in every way that leaves something to find. */
START_TEST(a_damaged_member_costs_itself_only)
{
    static const char *const names[] = {"one", "two", "three"};
    for (int victim = 0; victim < 3; victim++) {
        for (int way = 0; way < 4; way++) {
            struct pb_writer w[3] = {{0}};
            struct member members[3];
            uint8_t packed[512];
            for (int i = 0; i < 3; i++)
                members[i] = (struct member){names[i], make_trace(&w[i], names[i], 0, 100, 0, 110 + i)};
            struct slice *bytes = &members[victim].bytes;
            uint8_t *p = (uint8_t *)(uintptr_t)bytes->p;
            if (way == 0) { /* no trace at all */
                memset(p, 0x5a, bytes->len);
            } else if (way == 1) { /* the packet begins with a field that no message has */
                struct pb_cursor c = pb_cursor(*bytes);
                struct pb_field packet;
                ck_assert(pb_next(&c, &packet));
                p[packet.p - p] = 0x0f;
            } else if (way == 2) { /* a tag that is none between two packets */
                pb_put_raw(&w[victim], "\x0b", 1);
                *bytes = pb_written(&w[victim]);
            } else { /* compressed, and broken off */
                uLongf n = sizeof packed - 10;
                memcpy(packed, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
                z_stream z = {0};
                deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
                z.next_in = p;
                z.avail_in = (uInt)bytes->len;
                z.next_out = packed + 10;
                z.avail_out = (uInt)n;
                deflate(&z, Z_FINISH);
                *bytes = slice_of(packed, 10 + z.total_out / 2);
                deflateEnd(&z);
            }
            struct load l;
            int64_t machine;
            load_members(&l, members, 3, victim % 2);
            ck_assert_msg(l.rc == 0, "way %d: %s", way, l.err.text);
            for (int i = 0; i < 3; i++)
                if (i != victim)
                    ck_assert_msg(time_of(&l, names[i], &machine) == 110 + i, "way %d: %s is missing", way, names[i]);
            ck_assert_msg(damaged_members(&l) == 1, "way %d: %d damaged", way, (int)damaged_members(&l));
            ck_assert_uint_eq(l.st.t[T_trace_import_logs].n_rows, 1);
            unload(&l);
            for (int i = 0; i < 3; i++)
                pb_writer_free(&w[i]);
        }
    }
}
END_TEST

START_TEST(an_archive_that_breaks_off_keeps_what_it_has)
{
    struct pb_writer a = {0}, b = {0};
    uint8_t *bytes = malloc(ARCHIVE_BYTES);
    struct member members[] = {{"a", make_trace(&a, "one", 0, 100, 0, 110)}, {"b", make_trace(&b, "two", 0, 1, 0, 2)}};
    make_archive(bytes, members, 2, true);
    struct load l = {0};
    int64_t machine;
    storage_init(&l.st);
    ck_assert_int_eq(importer_open(&l.im, &l.st, NULL, &l.err), 0);
    /* The second member's header is there, its data is not. */
    l.rc = importer_feed(l.im, bytes, 512 * 3 + 4, &l.err);
    ck_assert_int_eq(importer_finish(l.im, &l.err), 0);
    ck_assert_int_eq(time_of(&l, "one", &machine), 110);
    ck_assert_int_ge(damaged_members(&l), 1);
    unload(&l);
    free(bytes);
    pb_writer_free(&a);
    pb_writer_free(&b);
}
END_TEST

/* Cut where no member is broken: between two, or behind the last one. What was cut off may have been more members. */
START_TEST(an_archive_without_its_end_is_damaged)
{
    bool tar = _i;
    struct pb_writer a = {0}, b = {0};
    uint8_t *bytes = malloc(ARCHIVE_BYTES);
    struct member members[] = {{"a", make_trace(&a, "one", 0, 100, 0, 110)}, {"b", make_trace(&b, "two", 0, 1, 0, 2)}};
    size_t whole = make_archive(bytes, members, 2, tar), end = tar ? 2048 : whole - 22;
    size_t cuts[] = {tar ? 1024 : end - 20, end - (tar ? 200 : 1), end, whole};
    for (int i = 0; i < 4; i++) {
        struct load l = {0};
        int64_t machine;
        storage_init(&l.st);
        ck_assert_int_eq(importer_open(&l.im, &l.st, NULL, &l.err), 0);
        ck_assert_int_eq(importer_feed(l.im, bytes, cuts[i], &l.err), 0);
        ck_assert_int_eq(importer_finish(l.im, &l.err), 0);
        ck_assert_int_eq(time_of(&l, "one", &machine), 110);
        ck_assert_msg((damaged_members(&l) > 0) == (cuts[i] < whole), "%zu of %zu bytes", cuts[i], whole);
        unload(&l);
    }
    free(bytes);
    pb_writer_free(&a);
    pb_writer_free(&b);
}
END_TEST

/* Names are labels: nothing is ever written where they point, and links and directories are no traces. */
START_TEST(names_of_members_lead_nowhere)
{
    struct pb_writer a = {0};
    struct slice trace = make_trace(&a, "one", 0, 100, 0, 110);
    char long_name[1200];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    const char *names[] = {"../../../tmp/meridian-escape", "/tmp/meridian-escape", "", ".", "a/../../b", long_name};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct member members[] = {{names[i], trace}};
        struct load l;
        load_members(&l, members, 1, false);
        ck_assert_int_ne(access("/tmp/meridian-escape", F_OK), 0);
        unload(&l);
    }
    pb_writer_free(&a);
}
END_TEST

/* 160 MB of zeros in 160 KB, as a member and as a compressed file. */
START_TEST(bombs_are_refused)
{
    enum { ZEROS = 160 << 20, PIECE = 1 << 20, CAP = 2 << 20 };
    uint8_t *out = malloc(CAP), *zeros = calloc(1, PIECE);
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = out;
    z.avail_out = CAP;
    for (int i = 0; i < ZEROS / PIECE; i++) {
        zeros[0] = i ? 0 : 0x0a; /* it begins like a packet of any length */
        zeros[1] = zeros[2] = zeros[3] = zeros[4] = i ? 0 : 0xff;
        zeros[5] = i ? 0 : 0x01;
        z.next_in = zeros;
        z.avail_in = PIECE;
        ck_assert_int_eq(deflate(&z, i + 1 < ZEROS / PIECE ? Z_NO_FLUSH : Z_FINISH),
                         i + 1 < ZEROS / PIECE ? Z_OK : Z_STREAM_END);
    }
    struct member members[] = {{"bomb.gz", slice_of(out, z.total_out)}};
    struct load l;
    load_members(&l, members, 1, _i);
    ck_assert_int_eq(l.rc, -MRD_ELIMIT);
    ck_assert_ptr_nonnull(strstr(l.err.text, "bomb.gz: unpacks to more than 200 times its size"));
    unload(&l);
    l = (struct load){0};
    storage_init(&l.st);
    ck_assert_int_eq(importer_open(&l.im, &l.st, NULL, &l.err), 0);
    ck_assert_int_eq(importer_feed(l.im, out, z.total_out, &l.err), -MRD_ELIMIT);
    ck_assert_ptr_nonnull(strstr(l.err.text, "decompression bomb"));
    importer_finish(l.im, &l.err);
    unload(&l);
    struct pb_writer packed = {0}; /* the same as a compressed packet */
    size_t packet = pb_begin(&packed, 1);
    pb_put_bytes(&packed, 50, out, z.total_out);
    pb_end(&packed, packet);
    l = (struct load){0};
    storage_init(&l.st);
    ck_assert_int_eq(importer_open(&l.im, &l.st, NULL, &l.err), 0);
    ck_assert_int_eq(importer_feed(l.im, packed.p, packed.n, &l.err), 0);
    ck_assert_int_eq(importer_finish(l.im, &l.err), -MRD_ELIMIT);
    ck_assert_ptr_nonnull(strstr(l.err.text, "decompression bomb"));
    unload(&l);
    pb_writer_free(&packed);
    deflateEnd(&z);
    free(out);
    free(zeros);
}
END_TEST

Suite *archives_suite(void);
Suite *archives_suite(void)
{
    Suite *s = suite_create("archives");
    TCase *t = tcase_create("archives");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_damaged_member_costs_itself_only);
    tcase_add_loop_test(t, an_archive_without_its_end_is_damaged, 0, 2);
    tcase_add_test(t, an_archive_that_breaks_off_keeps_what_it_has);
    tcase_add_test(t, names_of_members_lead_nowhere);
    tcase_add_loop_test(t, bombs_are_refused, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
