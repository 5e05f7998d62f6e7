/* SQL over a recording, for tests of what an import makes. */
#ifndef MERIDIAN_TEST_RECORDING_FIXTURE_H
#define MERIDIAN_TEST_RECORDING_FIXTURE_H

#include "importer/importer.h"
#include "sql_fixture.h"

static struct sql_fixture f;
static struct importer *im;

static inline void import(const char *path)
{
    struct error err = {0};
    sql_open(&f);
    ck_assert_msg(importer_open(&im, &f.st, NULL, &err) == 0, "%s", err.text);
    ck_assert_msg(importer_add_file(im, path, &err) == 0, "%s", err.text);
    ck_assert_msg(importer_finish(im, &err) == 0, "%s", err.text);
    ck_assert_msg(engine_loaded(f.e, &err) == 0, "%s", err.text);
}

static inline void close_all(void)
{
    sql_close(&f);
    importer_close(im);
}

#endif
