/* Loads libraries. */
#include "base/shared_library.h"

#include <dlfcn.h>
#include <string.h>

const char *shared_library_load(const char *file, const char *const *names, void *functions)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return "";
    for (char *at = functions; *names; names++, at += sizeof(void *)) {
        void *found = dlsym(library, *names);
        if (!found)
            return *names;
        memcpy(at, &found, sizeof found); /* POSIX gives functions through a void pointer; so C allows it */
    }
    return NULL;
}
