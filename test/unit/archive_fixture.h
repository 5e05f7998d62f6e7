/* Archives of small traces, and what becomes of them. */
#ifndef MERIDIAN_TEST_UNIT_ARCHIVE_FIXTURE_H
#define MERIDIAN_TEST_UNIT_ARCHIVE_FIXTURE_H

#include "importer/clock/clock_graph.h"
#include "importer/importer.h"
#include "wire/pb_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <stdlib.h>

enum { ARCHIVE_BYTES = 2 << 20 };

/* A trace with one trigger a time; `boot` and `real` are a snapshot (0: the trace has no clocks). */
static inline struct slice make_trace(struct pb_writer *w, const char *name, uint32_t machine_id, int64_t boot,
                                      int64_t real, int64_t ts)
{
    if (boot) {
        size_t packet = pb_begin(w, 1), snapshot = pb_begin(w, 6);
        const int64_t values[][2] = {{CLOCK_ID_BOOTTIME, boot}, {CLOCK_ID_REALTIME, real}};
        for (int i = 0; i < (real ? 2 : 1); i++) {
            size_t clock = pb_begin(w, 1);
            pb_put_i64(w, 1, values[i][0]);
            pb_put_i64(w, 2, values[i][1]);
            pb_end(w, clock);
        }
        pb_put_varint(w, 2, CLOCK_ID_BOOTTIME);
        pb_end(w, snapshot);
        pb_end(w, packet);
    }
    size_t said = pb_begin(w, 1), info = pb_begin(w, 45);
    pb_put_str(w, 17, "Linux"); /* what every recorder of ours says of its machine, unless told otherwise */
    pb_end(w, info);
    if (machine_id)
        pb_put_varint(w, 98, machine_id);
    pb_end(w, said);
    size_t packet = pb_begin(w, 1);
    pb_put_i64(w, 8, ts);
    if (machine_id)
        pb_put_varint(w, 98, machine_id);
    size_t trigger = pb_begin(w, 46);
    pb_put_str(w, 1, name);
    pb_end(w, trigger);
    pb_end(w, packet);
    return pb_written(w);
}

struct member {
    const char *name;
    struct slice bytes;
};

static inline size_t make_archive(uint8_t *out, const struct member *members, size_t n, bool tar)
{
    size_t used = 0;
    struct archive *a = archive_write_new();
    if (tar)
        archive_write_set_format_ustar(a);
    else
        archive_write_set_format_zip(a);
    ck_assert_int_eq(archive_write_open_memory(a, out, ARCHIVE_BYTES, &used), ARCHIVE_OK);
    for (size_t i = 0; i < n; i++) {
        struct archive_entry *e = archive_entry_new();
        archive_entry_set_pathname(e, members[i].name);
        archive_entry_set_size(e, (la_int64_t)members[i].bytes.len);
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_perm(e, 0644);
        archive_write_header(a, e);
        archive_write_data(a, members[i].bytes.p, members[i].bytes.len);
        archive_entry_free(e);
    }
    archive_write_close(a);
    archive_write_free(a);
    return used;
}

struct load {
    struct storage st;
    struct importer *im;
    struct error err;
    int rc;
};

static inline void load_members(struct load *l, const struct member *members, size_t n, bool tar)
{
    uint8_t *bytes = malloc(ARCHIVE_BYTES);
    size_t len = make_archive(bytes, members, n, tar);
    l->err = (struct error){0};
    storage_init(&l->st);
    ck_assert_int_eq(importer_open(&l->im, &l->st, NULL, &l->err), 0);
    struct error finish = {0};
    l->rc = importer_feed(l->im, bytes, len, &l->err);
    int rc = importer_finish(l->im, &finish);
    if (!l->rc && rc) {
        l->rc = rc;
        l->err = finish;
    }
    free(bytes);
}

static inline void unload(struct load *l)
{
    importer_close(l->im);
    storage_free(&l->st);
}

/* The time of the trigger of a name, INT64_MIN when it is not there; *machine: the row it belongs to. */
static inline int64_t time_of(const struct load *l, const char *name, int64_t *machine)
{
    for (uint32_t row = 0; row < l->st.t[T_slice].n_rows; row++) {
        if (strcmp(strpool_cstr(&l->st.strings, (strid)ROW_GET(&l->st, slice, name, row)), name) != 0)
            continue;
        *machine = ROW_GET(&l->st, track, machine_id, (uint32_t)ROW_GET(&l->st, slice, track_id, row));
        return ROW_GET(&l->st, slice, ts, row);
    }
    return INT64_MIN;
}

#endif
