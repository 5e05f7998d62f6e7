/* Fuzzes the unwinder: the file is an ELF image; its last bytes are a stack, and say where it is unwound from. */
#include "unwind/unwind.h"

#include "fuzz.h"

enum { FILE_BYTES = 1 << 20, STACK_BYTES = 512, CODE = 0x400000 };

static bool find(void *ctx, uint64_t pc, struct unwind_place *place)
{
    *place = unwind_place_of(ctx, CODE, 0x1000);
    return pc >= CODE && pc < CODE + (1 << 24);
}

static void unwind_from(struct unwind_cache *cache, struct unwind_file *file, struct slice stack, uint64_t pc)
{
    uint8_t values[24 * 8] = {0};
    struct unwind_frame frames[UNWIND_MAX_FRAMES];
    enum unwind_end end;
    struct unwind_task t = {.arch = UNWIND_X86_64, .find = find, .ctx = file, .stack = stack};
    for (unsigned i = 0; i < 24; i++) /* the frame pointer and others point into the stack */
        memcpy(values + 8 * i, &(uint64_t){0x7000 + 16 * i}, 8);
    memcpy(values + 8 * 7, &(uint64_t){0x7000}, 8);
    memcpy(values + 8 * 8, &pc, 8);
    unwind_set_registers(&t, 0xffffff, values);
    size_t n = unwind_stack(cache, &t, frames, UNWIND_MAX_FRAMES, &end);
    if (n < 1 || n > UNWIND_MAX_FRAMES || end >= UNWIND_ENDS)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct unwind_cache *cache;
    struct unwind_file *file = NULL;
    if (!cache)
        cache = unwind_cache_new();
    size_t n = size < STACK_BYTES ? size : STACK_BYTES;
    struct slice stack = slice_of(data + size - n, n);
    if (unwind_file_image(&file, slice_of(data, size), FILE_BYTES, NULL) == 0) {
        if (unwind_file_memory(file) > 3 * FILE_BYTES)
            __builtin_trap();
        for (uint64_t step = 0; step < 64 && n >= 4; step++)
            unwind_from(cache, file, stack, CODE + step * (1 + data[size - 1 - step % 4]));
    }
    unwind_cache_clear(cache);
    unwind_file_free(file);
    return 0;
}
