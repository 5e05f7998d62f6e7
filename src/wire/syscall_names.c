/* The names of system calls. */
#include "wire/syscall_names.h"

#include <stddef.h>
#include <string.h>

#define S(n, name) [n] = "sys_" name,
static const char *const names_x86_64[SYSCALL_LIMIT] = {
#include "wire/syscall_names_x86_64.def"
};
static const char *const names_x86[SYSCALL_LIMIT] = {
#include "wire/syscall_names_x86.def"
};
static const char *const names_arm64[SYSCALL_LIMIT] = {
#include "wire/syscall_names_arm64.def"
};
static const char *const names_arm[SYSCALL_LIMIT] = {
#include "wire/syscall_names_arm.def"
};
#undef S

static const struct {
    const char *machine;
    const char *const *names;
} machines[] = {
    {"x86_64", names_x86_64}, {"aarch64", names_arm64}, {"armv7l", names_arm},
    {"armv8l", names_arm},    {"i686", names_x86},
};

const char *const *syscall_names(const char *machine)
{
    for (size_t i = 0; machine && i < sizeof machines / sizeof *machines; i++)
        if (strcmp(machine, machines[i].machine) == 0)
            return machines[i].names;
    return NULL;
}

int syscall_number(const char *const *names, const char *name)
{
    enum { PREFIX = 4 };
    const char *bare = strncmp(name, "sys_", PREFIX) == 0 ? name + PREFIX : name;
    for (int i = 0; names && i < SYSCALL_LIMIT; i++)
        if (names[i] && strcmp(names[i] + PREFIX, bare) == 0)
            return i;
    return -1;
}
