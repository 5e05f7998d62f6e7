/* The readable names of C++ and Rust symbols.
 *
 *     _ZN3foo3barEv                        foo::bar()
 *     _ZN4core3fmt3pad17h0123456789abcdefE core::fmt::pad
 *     _RNvCs15kBYyAo9fc_7mycrate7example   mycrate::example
 *     _Z3foov.cold                         foo() (.cold)
 *
 * libiberty's code does it, which every binutils has: the two files of it that are used may be linked into any program
 * (their licence says so), and know both languages. */
#ifndef MERIDIAN_DEMANGLE_DEMANGLE_H
#define MERIDIAN_DEMANGLE_DEMANGLE_H

#include "base/slice.h"

#include <stdbool.h>

enum {
    DEMANGLE_MAX_TEXT = 1 << 16,        /* bytes of a readable name; longer ones are not given */
    DEMANGLE_MAX_MANGLED = 1024,        /* of a name as it is: what the stack of any thread is enough for */
    DEMANGLE_MAX_MANGLED_DEEP = 1 << 14 /* with a stack of 64 MiB */
};

/* The readable name into `out`, which has room for `room` bytes, with a NUL; its length. 0: the name is not mangled, is
 * damaged, or its readable form does not fit. `deep`: the caller's stack has 64 MiB. */
size_t demangle(struct slice name, bool deep, char *out, size_t room);

#endif
