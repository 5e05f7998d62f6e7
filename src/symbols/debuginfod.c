/* Loads libdebuginfod when it is asked for: it brings a client of HTTP and a library for TLS. */
#include "symbols/debuginfod.h"

#include "base/alloc.h"
#include "base/shared_library.h"

#include <elfutils/debuginfod.h>
#include <stddef.h>
#include <stdlib.h>

#define FUNCTIONS(X)                                                                                                   \
    X(debuginfod_begin)                                                                                                \
    X(debuginfod_end)                                                                                                  \
    X(debuginfod_find_debuginfo)

struct debuginfod {
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
    debuginfod_client *client;
};

int debuginfod_open(struct debuginfod **out, struct error *err)
{
#define X(name) #name,
    static const char *const names[] = {FUNCTIONS(X) NULL};
#undef X
    _Static_assert(offsetof(struct debuginfod, client) == sizeof names - sizeof *names, "a pointer for each name");
    const char *servers = getenv("DEBUGINFOD_URLS");
    *out = NULL;
    if (!servers || !servers[0])
        return error_set(err, -MRD_ENOTFOUND, "--debuginfod: no server is named: set DEBUGINFOD_URLS");
    struct debuginfod *d = mem_zalloc(sizeof *d);
    if (!d)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    /* It stays loaded: what it uses (curl, TLS) keeps memory of its own until the program ends. */
    if (!shared_library_load("libdebuginfod.so.1", names, d))
        d->client = d->debuginfod_begin();
    if (!d->client) {
        debuginfod_close(d);
        return error_set(err, -MRD_ENOTFOUND,
                         "--debuginfod: libdebuginfod.so.1 is not installed (package libdebuginfod1, or "
                         "elfutils-debuginfod-client)");
    }
    *out = d;
    return 0;
}

int debuginfod_fetch(struct debuginfod *d, struct slice build_id, char **path)
{
    *path = NULL;
    int fd = d->debuginfod_find_debuginfo(d->client, build_id.p, (int)build_id.len, path);
    return fd >= 0 ? fd : -1;
}

void debuginfod_close(struct debuginfod *d)
{
    if (!d)
        return;
    if (d->client)
        d->debuginfod_end(d->client);
    mem_free(d);
}
