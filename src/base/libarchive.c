/* Loads libarchive. */
#include "base/libarchive.h"

#include "base/shared_library.h"

int libarchive_load(struct libarchive *l, struct error *err)
{
#define X(name) #name,
    static const char *const names[] = {LIBARCHIVE_FUNCTIONS(X) NULL};
#undef X
    _Static_assert(sizeof *l == sizeof names - sizeof *names, "a pointer for each name");
    const char *missing = shared_library_load("libarchive.so.13", names, l);
    if (!missing)
        return 0;
    return *missing ? error_set(err, -MRD_ENOTFOUND, "libarchive.so.13 lacks %s: 3.3 or newer is needed", missing)
                    : error_set(err, -MRD_ENOTFOUND,
                                "archives need libarchive.so.13, which is not installed (package libarchive13t64, "
                                "libarchive13, or libarchive)");
}
