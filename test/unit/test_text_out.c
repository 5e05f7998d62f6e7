/* Tests buffered text: all of it arrives in order, and a write that failed is told at the end. */
#include "base/alloc.h"
#include "base/file.h"
#include "shell/text_out.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct text_out out;

static void begin(void)
{
    out_init(&out, memfd_create("text", MFD_CLOEXEC));
    ck_assert_int_ge(out.fd, 0);
}

static void end(void)
{
    file_set_write_hook(NULL);
    close(out.fd);
}

static size_t written(char *text, size_t size)
{
    struct error err = {0};
    ck_assert_int_eq(out_flush(&out, &err), 0);
    ssize_t n = pread(out.fd, text, size - 1, 0);
    ck_assert_int_ge(n, 0);
    text[n] = 0;
    return (size_t)n;
}

START_TEST(pieces_in_order)
{
    char text[256];
    out_text(&out, "a");
    out_char(&out, 'b');
    out_bytes(&out, "c\0d", 3);
    out_int(&out, -12);
    out_printf(&out, "[%03d %s]", 7, "x");
    out_repeat(&out, '.', 3);
    out_repeat(&out, '!', 0);
    out_json_string(&out, "q\"\n\x01\xff", 5);
    ck_assert_int_eq(out_put(&out, "z", 1), 0);
    size_t n = written(text, sizeof text);
    static const char wanted[] = "abc\0d-12[007 x]...\"q\\\"\\n\\u0001\\ufffd\"z";
    ck_assert_uint_eq(n, sizeof wanted - 1);
    ck_assert_mem_eq(text, wanted, n);
}
END_TEST

START_TEST(numbers)
{
    static const struct {
        int64_t v;
        const char *text;
    } rows[] = {
        {0, "0"}, {7, "7"}, {-1, "-1"}, {INT64_MAX, "9223372036854775807"}, {INT64_MIN, "-9223372036854775808"}};
    char text[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        out_int(&out, rows[i].v);
        written(text, sizeof text);
        ck_assert_str_eq(text, rows[i].text);
        ck_assert_int_eq(ftruncate(out.fd, 0), 0);
        lseek(out.fd, 0, SEEK_SET);
    }
}
END_TEST

/* More than the buffer holds, in pieces of every size: nothing is lost at the seams. */
START_TEST(more_than_the_buffer)
{
    enum { MAX = 2500 };
    static char all[4 << 20], got[4 << 20], piece[MAX];
    size_t n = 0;
    for (size_t len = 0; len < MAX; len++) {
        for (size_t i = 0; i < len; i++)
            piece[i] = all[n + i] = (char)('a' + (n + i) % 26);
        out_bytes(&out, piece, len);
        n += len;
        all[n++] = '\n';
        out_char(&out, '\n');
    }
    static char huge[200000];
    memset(huge, 'h', sizeof huge);
    out_bytes(&out, huge, sizeof huge);
    memset(all + n, 'h', sizeof huge);
    n += sizeof huge;
    ck_assert_uint_eq(written(got, sizeof got), n);
    ck_assert_mem_eq(got, all, n);
}
END_TEST

/* Text that is longer than a format's room is cut, not left out. */
START_TEST(long_formats)
{
    static char text[4096], word[3000];
    memset(word, 'w', sizeof word - 1);
    out_printf(&out, "%s", word);
    ck_assert_uint_eq(written(text, sizeof text), 1023);
    ck_assert_uint_eq(strspn(text, "w"), 1023);
}
END_TEST

static unsigned writes, fails_at;

static ssize_t write_or_fail(int fd, const void *buf, size_t len)
{
    if (++writes >= fails_at) {
        errno = ENOSPC;
        return -1;
    }
    return write(fd, buf, len);
}

/* A disk that is full in the middle: later text does not hide it, and is not written behind the gap. */
START_TEST(failures_are_told)
{
    struct error err = {0};
    static char huge[200000], got[300000];
    memset(huge, 'h', sizeof huge);
    file_set_write_hook(write_or_fail);
    fails_at = 2;
    out_bytes(&out, huge, sizeof huge);
    out_text(&out, "the end");
    ck_assert_int_lt(out_flush(&out, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "cannot write the answer"));
    ck_assert_uint_eq(writes, 2);
    ck_assert_int_eq(pread(out.fd, got, sizeof got, 0), 65536);
    err = (struct error){0};
    ck_assert_int_lt(out_flush(&out, &err), 0); /* it stays */
    ck_assert_int_ne(err.code, 0);
}
END_TEST

START_TEST(a_failure_says_why)
{
    struct error err = {0};
    file_set_write_hook(write_or_fail);
    fails_at = 1;
    out_text(&out, "x");
    ck_assert_int_lt(out_flush(&out, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "cannot write the answer: "));
    ck_assert_ptr_nonnull(strstr(err.text, "No space left"));
}
END_TEST

Suite *text_out_suite(void);

Suite *text_out_suite(void)
{
    Suite *s = suite_create("text_out");
    TCase *t = tcase_create("core");
    tcase_add_checked_fixture(t, begin, end);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, pieces_in_order);
    tcase_add_test(t, numbers);
    tcase_add_test(t, more_than_the_buffer);
    tcase_add_test(t, long_formats);
    tcase_add_test(t, failures_are_told);
    tcase_add_test(t, a_failure_says_why);
    suite_add_tcase(s, t);
    return s;
}
