/* Loads libarchive. */
#include "base/libarchive.h"

#include <dlfcn.h>
#include <string.h>

int libarchive_load(struct libarchive *l, struct error *err)
{
    void *library = dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL), *found = NULL;
    if (!library)
        return error_set(
            err, -MRD_ENOTFOUND,
            "archives need libarchive.so.13, which is not installed (package libarchive13t64, libarchive13, "
            "or libarchive)");
#define X(name)                                                                                                        \
    found = dlsym(library, #name);                                                                                     \
    if (!found)                                                                                                        \
        return error_set(err, -MRD_ENOTFOUND, "libarchive.so.13 lacks %s: 3.3 or newer is needed", #name);             \
    memcpy(&l->name, &found, sizeof found);
    LIBARCHIVE_FUNCTIONS(X)
#undef X
    return 0;
}
