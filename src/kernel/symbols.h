/* Kernel addresses in a trace: what a pointer field holds becomes a small number, and, when asked for, a name.
 *
 * A trace never carries a kernel address (that would give away the kernel's layout); each distinct address gets the
 * next number of its session, and the names of numbers go out as InternedData.kernel_symbols. Also the strings that
 * events refer to by address (`printk_formats`). */
#ifndef MERIDIAN_KERNEL_SYMBOLS_H
#define MERIDIAN_KERNEL_SYMBOLS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/u64map.h"
#include "base/vec.h"

/* The kernel's own symbol list, sorted by address; shared by all sessions. A zeroed struct is empty. */
struct kernel_symbol {
    uint64_t address;
    uint32_t name; /* offset into text */
    bool weak;     /* of type w or W */
};

typedef VEC(char) text_pool; /* strings behind each other, each with a NUL */

struct kernel_symbols {
    VEC(struct kernel_symbol)
    list;
    VEC(char)
    text;
};

/* Reads text in the form of /proc/kallsyms: functions only (t, T, w, W). Lines that do not parse are skipped; all
 * addresses 0 (kptr_restrict) leaves the list empty. */
int kernel_symbols_parse(struct kernel_symbols *s, struct slice text, struct error *err);
int kernel_symbols_load(struct kernel_symbols *s, struct error *err); /* from /proc/kallsyms */
/* The name of the function that `address` lies in, or NULL. */
const char *kernel_symbols_find(const struct kernel_symbols *s, uint64_t address);
void kernel_symbols_free(struct kernel_symbols *s);

/* Numbers for the addresses of one session. A zeroed struct is empty. */
struct address_table {
    struct u64map index; /* address → number, from 1 */
    VEC(uint64_t)
    unsent;        /* addresses of the numbers that have had no packet yet, in order */
    uint64_t next; /* the number given last */
};

enum { ADDRESS_TABLE_MAX = 1 << 20 }; /* functions are far fewer; locks are as many as there are files */

/* The number of `address`; 0 for address 0, when out of memory, and for a new one when there are ADDRESS_TABLE_MAX. */
uint64_t address_table_number(struct address_table *t, uint64_t address);
void address_table_free(struct address_table *t);

/* Strings of the kernel's read-only data that events point to. */
struct printk_formats {
    struct u64map index; /* address → offset into text + 1 */
    VEC(char)
    text;
};

/* Parses `printk_formats`: lines of `0xADDRESS : "text"`, with C escapes. */
int printk_formats_parse(struct printk_formats *f, struct slice text, struct error *err);
/* The string at `address`, or NULL. */
const char *printk_formats_find(const struct printk_formats *f, uint64_t address);
void printk_formats_free(struct printk_formats *f);

#endif
