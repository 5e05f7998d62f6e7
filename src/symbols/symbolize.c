/* Finds the files of a module, has its addresses named, and writes the packets. */
#include "symbols/symbolize.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hex.h"
#include "symbols/breakpad.h"
#include "symbols/function_table.h"
#include "symbols/safe_file.h"
#include "symbols/symbol_worker.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
    PACKET_BYTES = 16 << 20,
    MAX_KALLSYMS = 64 << 20,
};

bool symbol_module_is_kernel(const struct symbol_module *m)
{
    return strncmp(m->path, "[kernel.kallsyms]", strlen("[kernel.kallsyms]")) == 0;
}

void symbol_outcome_free(struct symbol_outcome *out)
{
    for (size_t i = 0; i < out->attempts.n; i++)
        mem_free(out->attempts.p[i].path);
    vec_free(&out->attempts);
    mem_free(out->file);
    *out = (struct symbol_outcome){0};
}

/* --- packets ------------------------------------------------------------------------------------------------------ */

/* The bytes of a build id's text; of one that is a text itself, that. */
static size_t build_id_bytes(const char *text, uint8_t out[ELF_MAX_BUILD_ID])
{
    size_t n = strlen(text);
    if (n <= 2 * ELF_MAX_BUILD_ID && strspn(text, "0123456789abcdef") == n && hex_bytes(slice_of(text, n), out))
        return n / 2;
    n = n <= ELF_MAX_BUILD_ID ? n : 0;
    memcpy(out, text, n);
    return n;
}

/* `symbols`: the address_symbols of a module, as many as there are; packets hold a part of them each. */
static int write_packets(const struct symbol_module *m, struct slice symbols, struct pb_writer *w, struct error *err)
{
    uint8_t id[ELF_MAX_BUILD_ID];
    size_t n_id = build_id_bytes(m->build_id, id);
    struct pb_cursor c = pb_cursor(symbols);
    struct pb_field f;
    while (c.p < c.end && !w->failed) {
        const uint8_t *from = c.p;
        while (c.p < c.end && c.p - from < PACKET_BYTES && pb_next(&c, &f)) {
        }
        size_t packet = pb_begin(w, TRACE_PACKET), module = pb_begin(w, TRACE_PACKET_MODULE_SYMBOLS);
        pb_put_text(w, MODULE_SYMBOLS_PATH, slice_str(m->path));
        pb_put_bytes(w, MODULE_SYMBOLS_BUILD_ID, id, n_id);
        pb_put_raw(w, from, (size_t)(c.p - from));
        pb_end(w, module);
        pb_end(w, packet);
        if (c.bad)
            return error_set(err, -MRD_EFORMAT, "the names are damaged");
    }
    return w->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

static void put_address(struct pb_writer *w, uint64_t address, struct slice function, struct slice file, uint32_t line)
{
    size_t mark = pb_begin(w, MODULE_SYMBOLS_ADDRESS_SYMBOLS);
    pb_put_varint(w, ADDRESS_SYMBOLS_ADDRESS, address);
    size_t lines = pb_begin(w, ADDRESS_SYMBOLS_LINES);
    pb_put_text(w, LINE_FUNCTION_NAME, function);
    pb_put_text(w, LINE_SOURCE_FILE_NAME, file);
    pb_put_varint(w, LINE_LINE_NUMBER, line);
    pb_end(w, lines);
    pb_end(w, mark);
}

/* --- Breakpad ----------------------------------------------------------------------------------------------------- */

static int out_of_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static int note(struct symbol_outcome *out, const char *path, enum symbol_try what, struct error *err)
{
    char *copy = mem_strdup(path);
    if (copy && vec_push(&out->attempts, (struct symbol_attempt){copy, what}))
        return 0;
    mem_free(copy);
    return out_of_memory(err);
}

static int from_breakpad(const char *dir, const struct symbol_module *m, struct pb_writer *w,
                         struct symbol_outcome *out, struct error *err)
{
    char path[PATH_MAX];
    struct error why = {0};
    struct mapped_file file;
    int fd, n = snprintf(path, sizeof path, "%s/%s.breakpad", dir, m->build_id);
    if (n < 0 || (size_t)n >= sizeof path || strchr(m->build_id, '/'))
        return 0;
    enum safe_file opened = safe_file_open(path, false, &fd);
    if (opened != SAFE_FILE_OPEN)
        return note(out, path, opened == SAFE_FILE_MISSING ? SYMBOL_TRY_MISSING : SYMBOL_TRY_NOT_REGULAR, err);
    char open_file[64];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
    struct breakpad_line *lines = mem_zalloc(m->n * sizeof *lines);
    int rc = lines ? mapped_file_open(&file, open_file, &why) : -MRD_ENOMEM;
    close(fd);
    if (rc < 0) {
        mem_free(lines);
        return lines ? note(out, path, SYMBOL_TRY_UNREADABLE, err) : out_of_memory(err);
    }
    rc = breakpad_lookup(file.bytes, m->addresses, m->n, lines, &why);
    for (size_t i = 0; rc == 0 && i < m->n; i++)
        if (lines[i].function.len) {
            put_address(w, m->addresses[i], lines[i].function, lines[i].file, lines[i].file.len ? lines[i].line : 0);
            out->named++;
        }
    mapped_file_close(&file);
    mem_free(lines);
    if (rc == -MRD_ENOMEM)
        return out_of_memory(err);
    if (rc < 0)
        snprintf(out->note, sizeof out->note, "failed to parse: %.150s", why.text);
    mem_free(out->file);
    out->file = mem_strdup(path);
    return out->file ? note(out, path, rc < 0 ? SYMBOL_TRY_DAMAGED : SYMBOL_TRY_FOUND, err) : out_of_memory(err);
}

/* --- the running kernel's own list -------------------------------------------------------------------------------- */

/* The build id of the running kernel. */
static size_t running_kernel(uint8_t out[ELF_MAX_BUILD_ID])
{
    struct error err = {0};
    char *notes;
    size_t len, n = 0;
    if (file_read_all("/sys/kernel/notes", 1 << 16, &notes, &len, &err) < 0)
        return 0;
    for (size_t at = 0; at + 12 <= len;) {
        uint32_t head[3];
        memcpy(head, notes + at, sizeof head);
        uint64_t name = at + 12, text = name + (((uint64_t)head[0] + 3) & ~UINT64_C(3));
        if (text + head[1] > len)
            break;
        if (head[2] == 3 && head[0] == 4 && memcmp(notes + name, "GNU", 4) == 0 && head[1] <= ELF_MAX_BUILD_ID) {
            n = head[1];
            memcpy(out, notes + text, n);
        }
        at = (size_t)(text + (((uint64_t)head[1] + 3) & ~UINT64_C(3)));
    }
    mem_free(notes);
    return n;
}

/* By its build id; recordings of perf that do not tell it (but for those with --buildid-mmap) by its release, as
 * vmlinux is. */
static bool is_running_kernel(const struct symbolizer *s, const char *build_id)
{
    uint8_t id[ELF_MAX_BUILD_ID], ours[ELF_MAX_BUILD_ID];
    struct utsname u;
    size_t n = build_id_bytes(build_id, id);
    if (n)
        return n == running_kernel(ours) && memcmp(id, ours, n) == 0;
    return s->release[0] && uname(&u) == 0 && strcmp(u.release, s->release) == 0;
}

/* A mapping of the kernel begins at the symbol that its name ends with, wherever that lay at the time. Its address
 * here, out of the text of kallsyms: a table of functions has only one of the names that an address has. */
static uint64_t kernel_base(const char *text, size_t len, const char *path)
{
    const char *symbol = strchr(path, ']') ? strchr(path, ']') + 1 : "";
    const char *const names[] = {symbol, "_stext", "_text"};
    uint64_t bases[sizeof names / sizeof *names] = {0};
    for (const char *line = text, *eol; (eol = memchr(line, '\n', (size_t)(text + len - line))) != NULL;
         line = eol + 1) {
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            size_t n = strlen(names[k]);
            if (n && (size_t)(eol - line) > n && eol[-(ptrdiff_t)n - 1] == ' ' && memcmp(eol - n, names[k], n) == 0)
                bases[k] = strtoull(line, NULL, 16);
        }
    }
    return bases[0] ? bases[0] : bases[1] ? bases[1] : bases[2];
}

static int from_kallsyms(const struct symbolizer *s, const struct symbol_module *m, struct pb_writer *w,
                         struct symbol_outcome *out, struct error *err)
{
    static const char path[] = "/proc/kallsyms";
    struct function_table t = {0};
    struct error why = {0};
    char *text = NULL;
    size_t len = 0;
    if (!is_running_kernel(s, m->build_id))
        return note(out, path, SYMBOL_TRY_MISMATCH, err);
    int rc = file_read_all(path, MAX_KALLSYMS, &text, &len, &why);
    uint64_t base = rc == 0 ? kernel_base(text, len, m->path) : 0;
    if (rc == 0)
        rc = function_table_read_kallsyms(&t, text, len, &why); /* which owns the text from here on */
    for (size_t i = 0; base && rc == 0 && i < m->n; i++) {
        const struct function *f = function_table_find(&t, m->addresses[i] + base);
        if (!f)
            continue;
        put_address(w, m->addresses[i], slice_str(f->name), slice_of("", 0), 0);
        out->named++;
    }
    function_table_free(&t);
    if (rc < 0)
        snprintf(out->note, sizeof out->note, "%.180s", why.text);
    if (out->named)
        out->file = mem_strdup(path);
    return note(out, path, out->named ? SYMBOL_TRY_FOUND : SYMBOL_TRY_UNREADABLE, err);
}

/* --- ELF ---------------------------------------------------------------------------------------------------------- */

static int run_worker(const struct symbolizer *s, const struct symbol_module *m, const struct symbol_found *found,
                      struct pb_writer *w, struct symbol_outcome *out, struct error *err)
{
    struct symbol_job_result result;
    struct error why = {0};
    uint64_t shift = symbol_module_is_kernel(m) ? found->image.address
                                                : elf_image_address(&found->image, 0, m->file_offset, m->load_bias);
    uint64_t *addresses = mem_alloc(m->n * sizeof *addresses);
    if (!addresses)
        return out_of_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (m->addresses[i] + shift >= shift)
            addresses[n++] = m->addresses[i] + shift;
    struct symbol_job job = {.fd = found->fd,
                             .debug_fd = found->debug_fd,
                             .alt_fd = found->alt_fd,
                             .addresses = addresses,
                             .n = n,
                             .shift = shift,
                             .cpu_s = s->cpu_s,
                             .program = s->program};
    int rc = symbol_job_run(&job, w, &result, &why);
    mem_free(addresses);
    out->named = result.named;
    if (rc == -MRD_ENOMEM)
        return out_of_memory(err);
    snprintf(out->note, sizeof out->note, "%.180s", rc < 0 ? why.text : result.note);
    return 0;
}

static int from_files(const struct symbolizer *s, const struct symbol_module *m, struct pb_writer *w,
                      struct symbol_outcome *out, struct error *err)
{
    uint8_t id[ELF_MAX_BUILD_ID];
    struct symbol_found found;
    struct slice build_id = slice_of(id, build_id_bytes(m->build_id, id));
    bool kernel = symbol_module_is_kernel(m);
    int rc = kernel ? symbol_finder_find_kernel(s->finder, s->release, build_id, &found, err)
                    : symbol_finder_find(s->finder, slice_str(m->path), build_id, &found, err);
    out->attempts.p = found.attempts.p; /* they are the outcome's now */
    out->attempts.n = found.attempts.n;
    out->attempts.cap = found.attempts.cap;
    memset(&found.attempts, 0, sizeof found.attempts);
    if (rc == 0 && found.fd >= 0 && found.wealth) {
        rc = run_worker(s, m, &found, w, out, err);
        out->file = found.path;
        found.path = NULL;
    }
    symbol_found_free(&found);
    for (size_t i = 0; rc == 0 && !out->named && m->build_id[0] && i < s->sources->n_paths; i++)
        rc = from_breakpad(s->sources->paths[i], m, w, out, err);
    if (rc == 0 && kernel && !out->named && s->sources->this_machine)
        rc = from_kallsyms(s, m, w, out, err);
    return rc;
}

int symbolize_module(const struct symbolizer *s, const struct symbol_module *m, struct pb_writer *packets,
                     struct symbol_outcome *out, struct error *err)
{
    struct pb_writer names = {0};
    *out = (struct symbol_outcome){0};
    int rc = !m->n                  ? 0
             : s->sources->breakpad ? from_breakpad(s->sources->breakpad, m, &names, out, err)
                                    : from_files(s, m, &names, out, err);
    if (rc == 0 && names.failed)
        rc = out_of_memory(err);
    if (rc == 0)
        rc = write_packets(m, pb_written(&names), packets, err);
    pb_writer_free(&names);
    return rc;
}
