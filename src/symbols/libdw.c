/* Loads libdw. */
#include "symbols/libdw.h"

#include "base/shared_library.h"

int libdw_open(struct libdw *l, struct error *err)
{
#define X(name) #name,
    static const char *const names[] = {LIBDW_FUNCTIONS(X) NULL};
#undef X
    _Static_assert(sizeof *l == sizeof names - sizeof *names, "a pointer for each name");
    const char *missing = shared_library_load("libdw.so.1", names, l);
    if (!missing)
        return 0;
    return *missing ? error_set(err, -MRD_ENOTFOUND, "libdw.so.1 lacks %s: elfutils 0.171 or newer is needed", missing)
                    : error_set(err, -MRD_ENOTFOUND, "libdw.so.1 is not installed (package libdw1, or elfutils-libs)");
}
