/* Fuzzes what reads files with symbols in the program itself: headers and functions of ELF files, Breakpad's files, the
 * kernel's list, and names. The first byte says which. */
#include "base/alloc.h"
#include "demangle/demangle.h"
#include "fuzz.h"
#include "symbols/breakpad.h"
#include "symbols/elf_image.h"
#include "symbols/function_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_functions(const struct function_table *t)
{
    for (size_t i = 0; i < t->list.n; i++) {
        const struct function *f = &t->list.p[i], *found = function_table_find(t, f->address);
        if ((i && f[-1].address >= f->address) || (found && found->address > f->address) || !f->name[0])
            abort();
    }
}

static void try_elf(const uint8_t *data, size_t size)
{
    struct elf_image e;
    struct function_table t = {0};
    struct error err = {0};
    int fd = memfd_create("elf", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    if (elf_image_open(&e, fd, &err) == 0) {
        if (e.build_id_len > sizeof e.build_id || (e.align & (e.align - 1)))
            abort();
        (void)elf_image_address(&e, 0x1000, e.offset, e.address);
        if (elf_image_sections(&e, &err) == 0) {
            if (strlen(e.debuglink) >= sizeof e.debuglink || strchr(e.debuglink, '/') ||
                strlen(e.altlink) >= sizeof e.altlink || e.alt_id_len > sizeof e.alt_id)
                abort();
            if (function_table_read_elf(&t, &e, NULL, &err) == 0)
                check_functions(&t);
            function_table_free(&t);
        }
    } else if (!err.text[0]) {
        abort();
    }
    elf_image_close(&e);
    close(fd);
}

static void try_breakpad(const uint8_t *data, size_t size)
{
    static const uint64_t addresses[] = {0, 1, 0x1000, 0x1008, 0x2010, 0xffff, UINT32_MAX, UINT64_MAX};
    enum { N = sizeof addresses / sizeof *addresses };
    struct breakpad_line lines[N];
    struct error err = {0};
    if (breakpad_lookup(slice_of(data, size), addresses, N, lines, &err) < 0 && !err.text[0])
        abort();
}

static void try_kallsyms(const uint8_t *data, size_t size)
{
    struct function_table t;
    struct error err = {0};
    char *text = mem_strndup((const char *)data, size);
    if (text && function_table_read_kallsyms(&t, text, size, &err) == 0)
        check_functions(&t);
    if (text)
        function_table_free(&t);
}

static void try_name(const uint8_t *data, size_t size)
{
    char out[4096];
    size_t n = demangle(slice_of(data, size), false, out, sizeof out);
    if (n >= sizeof out || (n && strlen(out) != n))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(const uint8_t *, size_t) = {try_elf, try_breakpad, try_kallsyms, try_name};
    if (!size)
        return 0;
    uint8_t *copy = malloc(size); /* of just that size */
    if (!copy)
        return 0;
    memcpy(copy, data + 1, size - 1);
    kinds[data[0] % (sizeof kinds / sizeof *kinds)](copy, size - 1);
    free(copy);
    return 0;
}
