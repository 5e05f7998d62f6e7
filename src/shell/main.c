/* tp_shell's entry. */
#include "shell/shell.h"
#include "symbols/symbol_worker.h"

#include <malloc.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], SYMBOL_WORKER_NAME) == 0)
        return symbol_worker_main();
    /* A load makes the heap grow by hundreds of megabytes in small pieces: asking the kernel for more at a time, and
     * giving back less eagerly, saves thousands of system calls and a twentieth of the time of a long load. */
    mallopt(M_TOP_PAD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    return shell_main(argc, argv);
}
