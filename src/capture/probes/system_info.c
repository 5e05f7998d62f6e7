/* The data source linux.system_info: the processors of this machine and, when asked for, the names of its interrupts.
 */
#include "base/alloc.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/proc_text.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

struct system_info {
    struct packet_sink sink;
    const char *sysroot;
    bool irq_names;
};

enum { PATH_SIZE = 512, CPUINFO_MAX = 4 << 20 };

/* One processor of /proc/cpuinfo while its lines go by. */
struct cpu {
    bool any, has_arm;
    uint64_t number;
    char name[256];
    uint64_t implementer, architecture, variant, part, revision;
    uint64_t features; /* see set_features() */
};

static void put_frequencies(struct pb_writer *w, const struct system_info *s, uint64_t cpu)
{
    static const char *const files[] = {"scaling_available_frequencies", "scaling_boost_frequencies"};
    char path[PATH_SIZE], text[4096];
    for (int i = 0; i < 2; i++) {
        uint64_t khz;
        char *p = text;
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%llu/cpufreq/%s", s->sysroot, (unsigned long long)cpu,
                 files[i]);
        if (text_read_once(path, text, sizeof text) <= 0)
            continue;
        while (text_u64(&p, &khz))
            pb_put_varint(w, CPU_INFO_CPU_FREQUENCIES, khz);
    }
}

static void put_cpu(struct pb_writer *w, const struct system_info *s, const struct cpu *c)
{
    char path[PATH_SIZE], text[64], *p = text;
    uint64_t capacity;
    if (!c->any)
        return;
    size_t message = pb_begin(w, CPU_INFO_CPUS);
    pb_put_str(w, CPU_INFO_CPU_PROCESSOR, c->name);
    put_frequencies(w, s, c->number);
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%llu/cpu_capacity", s->sysroot,
             (unsigned long long)c->number);
    if (text_read_once(path, text, sizeof text) > 0 && text_u64(&p, &capacity))
        pb_put_varint(w, CPU_INFO_CPU_CAPACITY, capacity);
    if (c->has_arm) {
        size_t arm = pb_begin(w, CPU_INFO_CPU_ARM_IDENTIFIER);
        pb_put_varint(w, CPU_INFO_ARM_CPU_IDENTIFIER_IMPLEMENTER, c->implementer);
        pb_put_varint(w, CPU_INFO_ARM_CPU_IDENTIFIER_ARCHITECTURE, c->architecture);
        pb_put_varint(w, CPU_INFO_ARM_CPU_IDENTIFIER_VARIANT, c->variant);
        pb_put_varint(w, CPU_INFO_ARM_CPU_IDENTIFIER_PART, c->part);
        pb_put_varint(w, CPU_INFO_ARM_CPU_IDENTIFIER_REVISION, c->revision);
        pb_end(w, arm);
    }
    if (c->features)
        pb_put_varint(w, CPU_INFO_CPU_FEATURES, c->features);
    pb_end(w, message);
}

/* The words of "Features" that traces have bits for, in the order of the bits. */
static void set_features(struct cpu *c, char *words)
{
    static const char *const names[] = {"mte", "mte3"};
    for (char *word; (word = text_word(&words));)
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(word, names[i]) == 0)
                c->features |= 1ull << i;
}

static void cpu_line(struct cpu *c, const char *key, char *value)
{
    static const struct {
        const char *key;
        size_t at;
    } arm[] = {
        {"CPU implementer", offsetof(struct cpu, implementer)},
        {"CPU architecture", offsetof(struct cpu, architecture)},
        {"CPU variant", offsetof(struct cpu, variant)},
        {"CPU part", offsetof(struct cpu, part)},
        {"CPU revision", offsetof(struct cpu, revision)},
    };
    if (strcmp(key, "model name") == 0 || (strcmp(key, "Processor") == 0 && !*c->name))
        snprintf(c->name, sizeof c->name, "%s", value);
    for (size_t i = 0; i < sizeof arm / sizeof *arm; i++) {
        if (strcmp(key, arm[i].key) == 0) {
            *(uint64_t *)(void *)((char *)c + arm[i].at) = strtoull(value, NULL, 0);
            c->has_arm = true;
        }
    }
    if (strcmp(key, "Features") == 0)
        set_features(c, value);
}

static void put_cpus(struct pb_writer *w, const struct system_info *s, char *text)
{
    struct cpu c = {0};
    for (char *line; (line = text_line(&text));) {
        char *value = strchr(line, ':');
        if (!value)
            continue;
        *value++ = 0;
        char *key = text_trim(line);
        value = text_trim(value);
        if (strcmp(key, "processor") == 0) { /* the first line of each */
            put_cpu(w, s, &c);
            c = (struct cpu){.any = true, .number = strtoull(value, NULL, 10)};
        } else {
            cpu_line(&c, key, value);
        }
    }
    put_cpu(w, s, &c);
}

/* "  26:          0         14  IO-APIC   4-edge      ttyS0": the name is what follows the counts. */
static void put_interrupts(struct pb_writer *w, char *text)
{
    for (char *line; (line = text_line(&text));) {
        uint64_t irq, count;
        char *p = line;
        if (!text_u64(&p, &irq) || *p != ':')
            continue;
        p++;
        while (text_u64(&p, &count))
            ;
        size_t message = pb_begin(w, INTERRUPT_INFO_IRQ_MAPPING);
        pb_put_varint(w, INTERRUPT_INFO_INTERRUPT_MAPPING_IRQ_ID, irq);
        pb_put_str(w, INTERRUPT_INFO_INTERRUPT_MAPPING_NAME, text_trim(p));
        pb_end(w, message);
    }
}

static void put_packet(struct system_info *s, const char *file, uint32_t field, bool cpus)
{
    char path[PATH_SIZE];
    struct text_file f = {0};
    struct pb_writer w = {0};
    snprintf(path, sizeof path, "%s%s", s->sysroot, file);
    char *text = text_file_read(&f, path);
    pb_put_varint(&w, TRACE_PACKET_TIMESTAMP, probes_boot_ns());
    size_t message = pb_begin(&w, field);
    if (text && cpus)
        put_cpus(&w, s, text);
    else if (text)
        put_interrupts(&w, text);
    pb_end(&w, message);
    if (text && !w.failed)
        packet_sink_write(&s->sink, pb_written(&w));
    pb_writer_free(&w);
    text_file_close(&f);
}

static int setup(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err)
{
    struct pb_field f;
    struct system_info *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for system_info");
    s->sink = *sink;
    s->sysroot = host->sysroot ? host->sysroot : "";
    s->irq_names = pb_find(config->specific, SYSTEM_INFO_CONFIG_IRQ_NAMES, &f) && pb_bool(&f);
    *state = s;
    return 0;
}

static int start(void *state, struct error *err)
{
    struct system_info *s = state;
    (void)err;
    put_packet(s, "/proc/cpuinfo", TRACE_PACKET_CPU_INFO, true);
    if (s->irq_names)
        put_packet(s, "/proc/interrupts", TRACE_PACKET_INTERRUPT_INFO, false);
    return 0;
}

const struct data_source_type system_info_data_source = {
    .name = "linux.system_info",
    .config_field = 119,
    .setup = setup,
    .start = start,
    .free = mem_free,
};
