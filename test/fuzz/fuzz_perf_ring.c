/* Fuzzes the ring of perf events, the sampler that its records go through, and the headers and symbols of ELF
 * files. The first byte
 * says how samples look. */
#include "capture/perf/perf_sample.h"
#include "capture/record/elf_names.h"

#include "base/alloc.h"
#include "fuzz.h"
#include "fuzz_packet.h"

#include <sys/mman.h>
#include <unistd.h>

enum { RING_BYTES = 1 << 16, NOT_HERE = 0x400000 /* above pid_max */ };

static void read_ring(struct perf_sampler *s, const uint8_t *data, size_t size)
{
    static uint8_t ring_bytes[RING_BYTES], scratch[PERF_RECORD_MAX_BYTES];
    struct perf_ring ring = {ring_bytes, RING_BYTES};
    uint64_t n = size < RING_BYTES ? size : RING_BYTES, begin = RING_BYTES - n / 2; /* round the end */
    struct slice record;
    bool broken;
    for (uint64_t i = 0; i < n; i++)
        ring_bytes[(begin + i) % RING_BYTES] = data[i];
    uint64_t tail = begin;
    while (perf_ring_next(&ring, &tail, begin + n, scratch, &record, &broken)) {
        perf_sampler_look_ahead(s, record, true);
        perf_sampler_look_ahead(s, record, false);
    }
    tail = begin;
    while (perf_ring_next(&ring, &tail, begin + n, scratch, &record, &broken)) {
        struct perf_record r;
        perf_record_read(&r, record, &s->layout);
        if (r.pid < 0 || r.pid >= NOT_HERE) /* this machine's processes are no input */
            perf_sampler_take(s, 0, record, 1000);
    }
    if (tail != begin + n)
        __builtin_trap();
    perf_sampler_retry(s, 1000, true);
}

static void read_elf(const uint8_t *data, size_t size)
{
    struct perf_elf e = {0};
    struct elf_names names;
    if (elf_names_read(&names, slice_of(data, size)))
        for (uint64_t at = 0; at < 1 << 16; at += 509)
            elf_names_find(&names, at);
    elf_names_free(&names);
    int fd = memfd_create("elf", MFD_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, data, size) == (ssize_t)size)
        perf_elf_read(&e, fd);
    if (e.build_id_len > PERF_BUILD_ID_BYTES)
        __builtin_trap();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char elf_magic[] = "\177ELF";
    struct perf_shared shared = {.kallsyms = -1};
    struct perf_config config = {.stacks = true, .timeout_ms = 100, .frequency = 1};
    struct perf_sampler *s = mem_zalloc(sizeof *s);
    struct perf_process p = {.pid = 1};
    if (!s || !size)
        goto out;
    if (size > 4 && memcmp(data, elf_magic, 4) == 0)
        read_elf(data, size);
    config.kernel_frames = data[0] & 1;
    config.user_frames = 1 + (data[0] >> 1 & 3);
    s->config = &config;
    s->shared = &shared;
    s->layout = (struct perf_layout){.callchain = data[0] & 8,
                                     .stack = data[0] & 16,
                                     .group = data[0] & 32,
                                     .lost = data[0] & 64,
                                     .regs_mask = perf_arch_regs.mask};
    s->packets.config = &config;
    s->packets.sink.write = fuzz_packet_is_whole;
    s->scope.config = &config.scope;
    perf_sampler_begin(s);
    read_ring(s, data + 1, size - 1);
    perf_process_parse(&s->processes, &p, slice_of(data, size));
    for (size_t i = 1; i < p.maps.n; i++)
        if (p.maps.p[i - 1].end > p.maps.p[i].start)
            __builtin_trap();
    vec_free(&p.maps);
    perf_sampler_free(s);
    perf_shared_free(&shared);
out:
    mem_free(s);
    return 0;
}
