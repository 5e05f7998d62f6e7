/* Tests the thread that writes trace files: order, full disks, pipes that nobody reads, and who hears of it. */
#include "base/alloc.h"
#include "base/file.h"
#include "capture/service/file_writer.h"

#include "loop_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uv_loop_t loop;
static unsigned progressed;
static char path[64];

static void on_progress(void *ctx)
{
    ck_assert_ptr_eq(ctx, &progressed);
    progressed++;
}

static struct file_writer *open_writer(int fd)
{
    struct error err = {0};
    struct file_writer *w = file_writer_open(&loop, fd, on_progress, &progressed, &err);
    ck_assert_msg(w, "%s", err.text);
    return w;
}

static int open_file(void)
{
    strcpy(path, "/tmp/meridian-file-writer-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* `n` packets of 100 bytes each: tag, length, 98 times the packet's number from `first` on. */
static void push_packets(struct file_writer *w, unsigned first, unsigned n)
{
    struct pb_writer bytes = {0};
    uint8_t packet[100] = {0x0a, 98};
    for (unsigned i = first; i < first + n; i++) {
        memset(packet + 2, (int)i, 98);
        pb_put_raw(&bytes, packet, sizeof packet);
    }
    ck_assert(file_writer_push(w, &bytes));
    ck_assert_ptr_null(bytes.p);
    ck_assert_uint_eq(bytes.n, 0);
}

static void check_packets(const char *text, size_t len)
{
    ck_assert_uint_eq(len % 100, 0);
    for (size_t i = 0; i < len; i++)
        if ((uint8_t)text[i] != (i % 100 == 0 ? 0x0a : i % 100 == 1 ? 98 : (uint8_t)(i / 100)))
            ck_abort_msg("byte %zu is wrong", i);
}

/* What is in the file now; removes it. */
static size_t take_file(void)
{
    struct error err = {0};
    char *text = NULL;
    size_t len = 0;
    ck_assert_int_eq(file_read_all(path, 1 << 20, &text, &len, &err), 0);
    check_packets(text, len);
    mem_free(text);
    unlink(path);
    return len;
}

static void count(uv_handle_t *h, void *ctx)
{
    (void)h;
    ++*(unsigned *)ctx;
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

/* Closes the writer, and waits for its thread: by itself it does not hold the loop. */
static void end(struct file_writer *w)
{
    uv_idle_t keep;
    uv_idle_init(&loop, &keep);
    uv_idle_start(&keep, on_idle);
    file_writer_close(w);
    unsigned handles;
    RUN_UNTIL(&loop, (handles = 0, uv_walk(&loop, count, &handles), handles == 1));
    uv_close((uv_handle_t *)&keep, NULL);
    loop_end(&loop);
}

START_TEST(packets_arrive_in_order)
{
    uv_loop_init(&loop);
    struct file_writer *w = open_writer(open_file());
    for (unsigned i = 0; i < 20; i++) {
        push_packets(w, i * 5, 5);
        if (i % 7 == 0)
            file_writer_sync(w);
    }
    RUN_UNTIL(&loop, file_writer_queued(w) == 0);
    ck_assert(!file_writer_done(w));
    RUN_UNTIL(&loop, progressed > 0);
    ck_assert_uint_eq(file_writer_written(w), 10000);
    progressed = 0;
    push_packets(w, 100, 1);
    file_writer_finish(w);
    RUN_UNTIL(&loop, file_writer_done(w) && progressed);
    ck_assert_int_eq(file_writer_error(w).code, 0);
    ck_assert_uint_eq(file_writer_written(w), 10100);
    ck_assert_uint_eq(take_file(), 10100);
    end(w);
}
END_TEST

/* ---- disks ---- */

static size_t room;  /* of the disk */
static size_t piece; /* that a write takes at most */

static ssize_t write_to_disk(int fd, const void *buf, size_t len)
{
    size_t n = len < room ? len : room;
    if (!room) {
        errno = ENOSPC;
        return -1;
    }
    n = n < piece ? n : piece;
    room -= n;
    return write(fd, buf, n);
}

START_TEST(short_writes_go_on)
{
    uv_loop_init(&loop);
    room = 1 << 20;
    piece = 7;
    file_set_write_hook(write_to_disk);
    struct file_writer *w = open_writer(open_file());
    push_packets(w, 0, 30);
    file_writer_finish(w);
    RUN_UNTIL(&loop, file_writer_done(w));
    file_set_write_hook(NULL);
    ck_assert_int_eq(file_writer_error(w).code, 0);
    ck_assert_uint_eq(take_file(), 3000);
    end(w);
}
END_TEST

/* The room of the disk, and what is left in the file: whole packets, each of 100 bytes. */
static const struct {
    size_t room, left;
} disks[] = {{0, 0}, {50, 0}, {100, 100}, {101, 100}, {1999, 1900}, {2600, 2600}, {2601, 2600}};

START_TEST(a_full_disk_ends_behind_a_whole_packet)
{
    for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
        uv_loop_init(&loop);
        room = disks[i].room;
        piece = 333;
        progressed = 0;
        file_set_write_hook(write_to_disk);
        struct file_writer *w = open_writer(open_file());
        push_packets(w, 0, 20);
        push_packets(w, 20, 20);
        RUN_UNTIL(&loop, file_writer_done(w) && progressed);
        push_packets(w, 40, 1); /* too late, and harmless */
        file_set_write_hook(NULL);
        struct error err = file_writer_error(w);
        ck_assert_msg(strstr(err.text, "cannot write the trace file: No space left"), "%s", err.text);
        ck_assert_uint_eq(file_writer_written(w), disks[i].left);
        ck_assert_uint_eq(take_file(), disks[i].left);
        end(w);
    }
}
END_TEST

/* Bytes of somebody else behind ours are not cut away. */
START_TEST(a_file_that_goes_on_behind_us_is_not_cut)
{
    char old[5000] = {0};
    struct stat st;
    int fd = open_file();
    uv_loop_init(&loop);
    ck_assert_int_eq(write(fd, old, sizeof old), sizeof old);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    room = 150;
    piece = 1000;
    file_set_write_hook(write_to_disk);
    struct file_writer *w = open_writer(fd);
    push_packets(w, 0, 20);
    RUN_UNTIL(&loop, file_writer_done(w));
    file_set_write_hook(NULL);
    ck_assert_int_ne(file_writer_error(w).code, 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 5000);
    unlink(path);
    end(w);
}
END_TEST

/* ---- pipes ---- */

/* Nothing waits for a reader that takes its time, and it gets everything. */
START_TEST(a_pipe_may_be_slow)
{
    static char got[100 * 5000];
    int fd[2];
    size_t n = 0;
    uv_loop_init(&loop);
    ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
    struct file_writer *w = open_writer(fd[1]);
    for (unsigned i = 0; i < 50; i++)
        push_packets(w, i * 100, 100);
    file_writer_sync(w); /* there is nothing to sync: not a failure */
    push_packets(w, 0, 0);
    file_writer_finish(w);
    loop_settle(&loop);
    ck_assert(!file_writer_done(w));
    ck_assert_uint_gt(file_writer_queued(w), 0);
    for (ssize_t r; (r = read(fd[0], got + n, sizeof got - n)) > 0;)
        n += (size_t)r;
    ck_assert_uint_eq(n, sizeof got);
    check_packets(got, n);
    RUN_UNTIL(&loop, file_writer_done(w));
    ck_assert_int_eq(file_writer_error(w).code, 0);
    close(fd[0]);
    end(w);
}
END_TEST

START_TEST(a_pipe_without_a_reader_is_an_error)
{
    int fd[2];
    uv_loop_init(&loop);
    ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
    close(fd[0]);
    struct file_writer *w = open_writer(fd[1]);
    push_packets(w, 0, 10);
    RUN_UNTIL(&loop, file_writer_done(w));
    ck_assert_str_eq(file_writer_error(w).text, "the service cannot write the trace file: Broken pipe");
    ck_assert_uint_eq(file_writer_written(w), 0);
    end(w);
}
END_TEST

/* Let go in the middle: the owner hears nothing more, and the thread does not wait for the pipe. */
START_TEST(closed_with_bytes_in_the_queue)
{
    int fd[2];
    uv_loop_init(&loop);
    ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
    struct file_writer *w = open_writer(fd[1]);
    for (unsigned i = 0; i < 50; i++)
        push_packets(w, i * 100, 100);
    loop_settle(&loop);
    unsigned before = progressed;
    uint64_t began = uv_hrtime();
    end(w);
    ck_assert_uint_lt((uv_hrtime() - began) / 1000000, FILE_STALL_MS / 2);
    ck_assert_uint_eq(progressed, before);
    close(fd[0]);
    file_writer_close(NULL);
}
END_TEST

Suite *file_writer_suite(void);

Suite *file_writer_suite(void)
{
    Suite *s = suite_create("file_writer");
    TCase *t = tcase_create("core");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, packets_arrive_in_order);
    tcase_add_test(t, short_writes_go_on);
    tcase_add_test(t, a_full_disk_ends_behind_a_whole_packet);
    tcase_add_test(t, a_file_that_goes_on_behind_us_is_not_cut);
    tcase_add_test(t, a_pipe_may_be_slow);
    tcase_add_test(t, a_pipe_without_a_reader_is_an_error);
    tcase_add_test(t, closed_with_bytes_in_the_queue);
    suite_add_tcase(s, t);
    return s;
}
