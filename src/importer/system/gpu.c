/* What GPUs tell: which there are, their frequency and memory. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

#include <stdio.h>

enum { MAX_GPUS = 256 /* in one GpuInfo */ };

uint32_t system_gpu(struct machine_ctx *m, uint32_t gpu)
{
    bool added;
    uint64_t *row = u64map_put(&m->system->gpus, gpu, &added);
    if (!row) {
        m->im->failed = true;
        return 0;
    }
    if (added) {
        *row = gpu_insert(m->st, &(struct gpu_row){.gpu = gpu, .machine_id = m->id});
    }
    return (uint32_t)*row;
}

static strid hex_uuid(struct machine_ctx *m, struct slice bytes)
{
    char text[2 * 32 + 1] = "";
    for (size_t i = 0; i < bytes.len && i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes.p[i]);
    return import_str(m->im, text);
}

static void add_gpu(struct machine_ctx *m, uint32_t number, struct slice bytes)
{
    uint32_t row = system_gpu(m, number);
    struct arg_list args = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        strid s = f.id == GPU_INFO_GPU_UUID         ? hex_uuid(m, pb_bytes(&f))
                  : f.id == GPU_INFO_GPU_EXTRA_INFO ? 0
                                                    : import_slice(m->im, pb_bytes(&f));
        switch (f.id) {
        case GPU_INFO_GPU_NAME:
            ROW_SET(m->st, gpu, name, row, s);
            break;
        case GPU_INFO_GPU_VENDOR:
            ROW_SET(m->st, gpu, vendor, row, s);
            break;
        case GPU_INFO_GPU_MODEL:
            ROW_SET(m->st, gpu, model, row, s);
            break;
        case GPU_INFO_GPU_ARCHITECTURE:
            ROW_SET(m->st, gpu, architecture, row, s);
            break;
        case GPU_INFO_GPU_UUID:
            ROW_SET(m->st, gpu, uuid, row, s);
            break;
        case GPU_INFO_GPU_PCI_BDF:
            ROW_SET(m->st, gpu, pci_bdf, row, s);
            break;
        case GPU_INFO_GPU_EXTRA_INFO: {
            struct pb_field key, value;
            if (pb_find(pb_bytes(&f), GPU_INFO_GPU_KEY_VALUE_KEY, &key) &&
                pb_find(pb_bytes(&f), GPU_INFO_GPU_KEY_VALUE_VALUE, &value)) {
                strid k = import_slice(m->im, pb_bytes(&key));
                arg_list_add(&m->st->args, &args, k, k, ARG_STRING, import_slice(m->im, pb_bytes(&value)));
            }
            break;
        }
        }
    }
    argset set = args_intern(&m->st->args, args.p, args.n);
    if (!argset_is_none(set))
        ROW_SET_ARGS(m->st, gpu, arg_set_id, row, set);
    arg_list_free(&args);
}

void gpu_info_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint32_t n = 0;
    while (pb_next(&c, &f))
        if (f.id == GPU_INFO_GPUS && n < MAX_GPUS)
            add_gpu(p->m, n++, pb_bytes(&f));
}

static uint32_t gpu_memory_track(struct machine_ctx *m, uint32_t gpu, uint32_t pid)
{
    struct process_tracker *processes = m->processes;
    uint32_t upid =
        pid ? process_tracker_thread_process(processes, process_tracker_update_thread(processes, pid, pid)) : 0;
    struct track_dim dims[] = {{"ugpu", DIM_INT, system_gpu(m, gpu)}, {"gpu", DIM_INT, gpu}, {"upid", DIM_INT, upid}};
    return system_counter_track(m, pid ? "process_gpu_memory" : "gpu_memory", import_str(m->im, "GPU Memory"), "bytes",
                                dims, pid ? 3 : 2);
}

void gpu_mem_total_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    uint32_t pid = 0, gpu = 0;
    uint64_t size = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GPU_MEM_TOTAL_EVENT_GPU_ID)
            gpu = pb_u32(&f);
        else if (f.id == GPU_MEM_TOTAL_EVENT_PID)
            pid = pb_u32(&f);
        else if (f.id == GPU_MEM_TOTAL_EVENT_SIZE)
            size = pb_u64(&f);
    }
    counter_push(m->im, p->ts, gpu_memory_track(m, gpu, pid), (double)size);
}

void gpu_frequency_parse(struct packet *p)
{
    uint32_t gpu = 0, khz = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GENERIC_GPU_FREQUENCY_EVENT_GPU_ID)
            gpu = pb_u32(&f);
        else if (f.id == GENERIC_GPU_FREQUENCY_EVENT_FREQUENCY_KHZ)
            khz = pb_u32(&f);
    }
    struct track_dim dims[] = {{"ugpu", DIM_INT, system_gpu(p->m, gpu)}, {"gpu", DIM_INT, gpu}};
    counter_push(p->m->im, p->ts,
                 system_counter_track(p->m, "gpu_frequency", import_str(p->m->im, "gpufreq"), "kHz", dims, 2),
                 (double)khz);
}
