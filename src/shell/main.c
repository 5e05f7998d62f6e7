/* tp_shell's entry. */
#include "base/alloc.h"
#include "shell/shell.h"
#include "symbols/symbol_worker.h"

#include <malloc.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], SYMBOL_WORKER_NAME) == 0)
        return symbol_worker_main();
    /* A load makes the heap grow by hundreds of megabytes in small pieces: asking the kernel for more at a time, and
     * giving back less eagerly, saves thousands of system calls and a twentieth of the time of a long load. So does
     * having many of its pages made at once (measured: 0.95 to 0.99 of the time of four loads). */
    mallopt(M_TOP_PAD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_ARENA_MAX, 1); /* what one thread allocates and another frees is there for both */
    alloc_populate_heap();
    return shell_main(argc, argv);
}
