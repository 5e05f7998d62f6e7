/* Compares a slice with a text, and prints both when they differ. */
#ifndef MERIDIAN_TEST_CK_SLICE_H
#define MERIDIAN_TEST_CK_SLICE_H

#include "base/slice.h"

#include <check.h>

#define ck_assert_slice_eq(SLICE, TEXT)                                                                                \
    do {                                                                                                               \
        struct slice got_ = (SLICE);                                                                                   \
        const char *want_ = (TEXT);                                                                                    \
        ck_assert_msg(slice_eq_str(got_, want_), "%s is \"%.*s\", not \"%s\"", #SLICE, (int)got_.len,                  \
                      (const char *)got_.p, want_);                                                                    \
    } while (0)

#endif
