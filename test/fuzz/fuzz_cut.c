/* Fuzzes the cut: of any trace a window is written, with pseudonyms or without, and what is written can be read again.
 * The first byte chooses the window and the rules, the rest is the trace. */
#include "cut/cut.h"
#include "cut/redact.h"
#include "importer/importer.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int count_packet(void *ctx, struct slice field)
{
    (void)field;
    ++*(uint64_t *)ctx;
    return 0;
}

/* Not more packets than were told, and each of them whole. */
static void read_again(const char *path, const struct cut_counts *told)
{
    struct packet_file f;
    struct packet_counts n = {0};
    struct error err = {0};
    uint64_t packets = 0;
    if (packet_file_open(&f, path, &err) < 0)
        abort();
    if (packet_file_walk(&f, count_packet, &packets, &n, &err) < 0 || n.tail || packets < told->packets_out)
        abort();
    packet_file_close(&f);
}

static void cut(struct importer *im, struct slice trace, uint8_t choice, const char *path)
{
    static const char rules[] = "key k\nname s*\narg *a*\ncommand-line *-*\nstring /*\ntext ed\ntext swap";
    const int64_t unit = 100000000;
    struct cut_counts counts;
    struct error err = {0};
    struct output_file out;
    struct redactor *redactor = NULL;
    struct packet_file in = {.bytes = trace};
    struct cut_window w = {.from = (choice & 15) * unit, .to = (1 + (choice & 15) + (choice >> 4 & 7)) * unit};
    if (choice & 128 && redactor_open(&redactor, rules, &err) < 0)
        abort();
    w.redactor = redactor;
    const uint64_t threads[] = {cut_thread_key(0, 1), cut_thread_key(0, 100), cut_thread_key(0, 4735)};
    w.threads = threads;
    w.n_threads = choice & 8 ? sizeof threads / sizeof *threads : 0;
    if (output_file_open(&out, path, &err) == 0) {
        int rc = cut_write(im, &in, &w, &out, &counts, &err);
        rc = output_file_close(&out, rc, &err);
        if (rc == 0)
            read_again(path, &counts);
        else if (!err.text[0])
            abort();
    }
    redactor_close(redactor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct import_options options = {.ignore_ftrace_parse_errors = true};
    struct storage st;
    struct importer *im;
    struct error err = {0};
    char path[64];
    if (size < 2 || storage_init(&st) != 0)
        return 0;
    snprintf(path, sizeof path, "/tmp/fuzz-cut-%ld", (long)getpid());
    if (importer_open(&im, &st, &options, &err) == 0) {
        if (importer_feed(im, data + 1, size - 1, &err) == 0 && importer_finish(im, &err) == 0)
            cut(im, slice_of(data + 1, size - 1), data[0], path);
        importer_close(im);
    }
    storage_free(&st);
    unlink(path);
    return 0;
}
