/* Programs that change a state by patches. The input is a message: 1 the program, 2 the state at first, 3 patches. */
#include "importer/protovm/program.h"

#include "fuzz.h"

enum { LIMIT = 64 << 10, WORK = 100000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_of(data, size);
    struct pb_cursor c = pb_cursor(input);
    struct pb_field f;
    struct vm_program program = {.bytes = pb_find(input, 1, &f) ? pb_bytes(&f) : slice_of(NULL, 0)};
    struct vm_tree state;
    uint64_t work = WORK;
    vm_tree_open(&state, pb_find(input, 2, &f) ? pb_bytes(&f) : slice_of(NULL, 0), LIMIT);
    while (pb_next(&c, &f)) {
        struct pb_writer w = {0};
        if (f.id != 3)
            continue;
        vm_program_run(&program, &state, pb_bytes(&f), &work);
        if (state.held > LIMIT)
            __builtin_trap();
        vm_write(&state.root, &w);
        pb_writer_free(&w);
    }
    vm_tree_close(&state);
    if (state.held)
        __builtin_trap(); /* everything is accounted for */
    return 0;
}
