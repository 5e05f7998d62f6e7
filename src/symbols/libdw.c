/* Loads libdw. */
#include "symbols/libdw.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

int libdw_open(struct libdw *l, struct error *err)
{
    *l = (struct libdw){.handle = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!l->handle)
        return error_set(err, -MRD_ENOTFOUND, "libdw.so.1 is not installed (package libdw1, or elfutils-libs)");
    void *found = NULL;
#define X(name)                                                                                                        \
    found = dlsym(l->handle, #name);                                                                                   \
    if (!found)                                                                                                        \
        return error_set(err, -MRD_ENOTFOUND, "libdw.so.1 lacks %s: elfutils 0.171 or newer is needed", #name);        \
    memcpy(&l->name, &found, sizeof found);
    LIBDW_FUNCTIONS(X)
#undef X
    return 0;
}
