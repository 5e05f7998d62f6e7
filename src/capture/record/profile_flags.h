/* The command line of profile. */
#ifndef MERIDIAN_CAPTURE_RECORD_PROFILE_FLAGS_H
#define MERIDIAN_CAPTURE_RECORD_PROFILE_FLAGS_H

#include "base/flags.h"

struct profile_flags {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/record/profile_flags.def"
#undef FLAG
    struct text_list none;
};

#endif
