/* Call stacks out of copies of registers and stack, by the unwind tables of ELF files (.eh_frame, .debug_frame, and
 * those that are packed in .gnu_debugdata).
 *
 * It reads bytes of anybody's files and processes, and trusts none of them: nothing is read outside of the copies, and
 * the work for one stack is bounded. It opens no file by itself. How a sample of perf_event_open is unwound:
 *
 *     struct unwind_cache *cache = unwind_cache_new();          // one for all; not for two threads at a time
 *     struct unwind_file *file;                                 // one for each ELF file that is mapped
 *     rc = unwind_file_read(&file, fd, UNWIND_FILE_BYTES, &err);
 *
 *     struct unwind_task t = {.arch = UNWIND_X86_64, .find = my_find, .ctx = me};
 *     unwind_set_registers(&t, regs_user_mask, regs_user_values);        // as in PERF_SAMPLE_REGS_USER with ABI_64
 *     t.stack = slice_of(bytes, dyn_size);                      // PERF_SAMPLE_STACK_USER; it begins at the stack
 * pointer struct unwind_frame frames[UNWIND_MAX_FRAMES]; size_t n = unwind_stack(cache, &t, frames, UNWIND_MAX_FRAMES,
 * &end);
 *
 * my_find() looks up which executable map an address lies in, and says with unwind_place_of() where that is in its
 * file:
 *
 *     static bool my_find(void *ctx, uint64_t pc, struct unwind_place *place)
 *     {
 *         const struct my_map *m = ...;                         // NULL: no executable memory there
 *         if (m)
 *             *place = unwind_place_of(m->file, m->start, m->offset);    // file NULL: it has no tables that we can
 * read return m != NULL;
 *     }
 *
 * frames[i].pc is a return address but for the innermost frame and those that a signal stopped: unwind_frame_code() is
 * the address to look names up for. Free each file with unwind_file_free() after the last cache that has seen it was
 * freed or cleared. */
#ifndef MERIDIAN_UNWIND_UNWIND_H
#define MERIDIAN_UNWIND_UNWIND_H

#include "base/error.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unwind_arch { UNWIND_NO_ARCH, UNWIND_X86_64, UNWIND_AARCH64 };

/* Of the machine that this was built for. */
#if defined(__x86_64__)
#define UNWIND_THIS_ARCH UNWIND_X86_64
#elif defined(__aarch64__)
#define UNWIND_THIS_ARCH UNWIND_AARCH64
#else
#define UNWIND_THIS_ARCH UNWIND_NO_ARCH
#endif

enum {
    UNWIND_REGISTERS = 34,       /* DWARF's numbers of general registers, pc included */
    UNWIND_MAX_FRAMES = 1000,    /* of one stack; Perfetto's and perf's bound is of that size, too */
    UNWIND_FILE_BYTES = 64 << 20 /* a fair bound for the tables of one file: those of large browsers have 20 MB */
};

/* ---- files ---- */

/* The unwind tables of one ELF file, in memory: the file may change or go once it was read. */
struct unwind_file;

/* Reads the tables of an open file: 64 bits, of any architecture that has a number above. `max_bytes` bounds the
 * memory. A file without tables is no error: it is an empty one. -MRD_EFORMAT: no ELF file, or its tables lie outside
 * of it; -MRD_ELIMIT: they are larger than `max_bytes`; -MRD_EUNSUPPORTED: 32 bits, or another architecture. */
int unwind_file_read(struct unwind_file **file, int fd, size_t max_bytes, struct error *err);

/* The same of an image in memory that is laid out as the file is, such as the vdso; it is copied as far as needed. */
int unwind_file_image(struct unwind_file **file, struct slice image, size_t max_bytes, struct error *err);
void unwind_file_free(struct unwind_file *file); /* NULL is fine */

/* Memory that it takes. */
size_t unwind_file_memory(const struct unwind_file *file);

/* ---- where an address lies ---- */

struct unwind_place {
    const struct unwind_file *file; /* NULL: there is code, but there are no tables for it */
    uint64_t bias;                  /* of an address over the one in the file's headers */
};

/* The place of a map: its first address, and which byte of the file is there. */
struct unwind_place unwind_place_of(const struct unwind_file *file, uint64_t map_start, uint64_t map_offset);

/* ---- stacks ---- */

struct unwind_task {
    enum unwind_arch arch;
    uint64_t regs[UNWIND_REGISTERS]; /* by DWARF number; x86_64: 16 is pc; aarch64: 31 is sp, 32 is pc */
    uint64_t known;                  /* bits of the registers that have a value */
    struct slice stack;              /* its copy, from the stack pointer on */

    /* Says where the code at `pc` is; false: nothing executable is mapped there. */
    bool (*find)(void *ctx, uint64_t pc, struct unwind_place *place);
    void *ctx;
};

/* Fills regs and known from a sample of perf_event_open: `mask` is sample_regs_user, `values` one u64 for each of its
 * bits, from the lowest on, at any alignment. */
void unwind_set_registers(struct unwind_task *t, uint64_t mask, const uint8_t *values);

/* Why a stack ends where it does. */
enum unwind_end {
    UNWIND_WHOLE,       /* at the outermost function of its thread */
    UNWIND_NO_MAP,      /* at an address where nothing is mapped that could run */
    UNWIND_NO_TABLES,   /* in code without unwind tables, and without frame pointers that could be followed */
    UNWIND_BAD_TABLES,  /* what the tables say makes no sense, or is too much work */
    UNWIND_OUTSIDE,     /* the next frame is not in the copy of the stack */
    UNWIND_REPEATS,     /* the caller is the frame itself */
    UNWIND_TOO_DEEP,    /* there is no room for more frames */
    UNWIND_UNSUPPORTED, /* the architecture is not known, or its registers are missing */
    UNWIND_ENDS
};

/* Profiling.StackUnwindError of such an end; 0: the stack is whole. */
uint32_t unwind_end_error(enum unwind_end end);

struct unwind_frame {
    uint64_t pc;
    bool exact; /* it was there, not a return address: the innermost frame, and what a signal stopped */
};

/* An address inside of the instruction that the frame is in: the call, for return addresses. */
uint64_t unwind_frame_code(const struct unwind_task *t, const struct unwind_frame *f);

/* What was found in tables, by address; of a fixed size of 2.5 MiB. */
struct unwind_cache;
struct unwind_cache *unwind_cache_new(void); /* NULL: out of memory */
void unwind_cache_clear(struct unwind_cache *c);
void unwind_cache_free(struct unwind_cache *c);

/* The frames of a stack, innermost first, up to `max`; at least one, unless the architecture is not known. The task's
 * registers end as those of the outermost frame. */
size_t unwind_stack(struct unwind_cache *cache, struct unwind_task *t, struct unwind_frame *frames, size_t max,
                    enum unwind_end *end);

#endif
