/* An import without a file: storage, one machine and its trackers, for tests of the importer's parts. */
#ifndef MERIDIAN_TEST_IMPORTER_FIXTURE_H
#define MERIDIAN_TEST_IMPORTER_FIXTURE_H

#include "importer/track/flow_tracker.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

#include <check.h>

struct importer_fixture {
    struct storage st;
    struct importer im;
    struct machine_ctx m;
};

static inline void importer_fixture_open(struct importer_fixture *f)
{
    memset(f, 0, sizeof *f);
    ck_assert_int_eq(storage_init(&f->st), 0);
    f->im.st = &f->st;
    f->m.im = &f->im;
    f->m.st = &f->st;
    ck_assert(vec_push(&f->im.machines, &f->m));
    f->im.tracks = track_tracker_open(&f->im);
    f->im.slices = slice_tracker_open(&f->im);
    f->im.flows = flow_tracker_open(&f->im);
    f->m.processes = process_tracker_open(&f->m);
    ck_assert_ptr_nonnull(f->im.tracks);
    ck_assert_ptr_nonnull(f->im.slices);
    ck_assert_ptr_nonnull(f->im.flows);
    ck_assert_ptr_nonnull(f->m.processes);
}

static inline void importer_fixture_close(struct importer_fixture *f)
{
    process_tracker_close(f->m.processes);
    flow_tracker_close(f->im.flows);
    slice_tracker_close(f->im.slices);
    track_tracker_close(f->im.tracks);
    vec_free(&f->im.machines);
    u64map_free(&f->im.metadata_rows);
    ck_assert(!f->im.failed);
    storage_free(&f->st);
}

static inline strid fixture_str(struct importer_fixture *f, const char *s)
{
    return import_str(&f->im, s);
}

#endif
