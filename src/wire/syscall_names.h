/* Names of system calls by number, for the machines that recordings come from. */
#ifndef MERIDIAN_WIRE_SYSCALL_NAMES_H
#define MERIDIAN_WIRE_SYSCALL_NAMES_H

#include <stdint.h>

enum { SYSCALL_LIMIT = 550 }; /* numbers of every table are below */

/* The table of a machine (as in utsname.machine), SYSCALL_LIMIT names with "sys_" in front, NULL for numbers that are
 * not in use. NULL when the machine is not known. The table is that of the kernel: calls of 32-bit programs on a 64-bit
 * kernel get its names. */
const char *const *syscall_names(const char *machine);

/* The number of a call in such a table, with or without "sys_" in front; -1 when it is not there. */
int syscall_number(const char *const *names, const char *name);

#endif
