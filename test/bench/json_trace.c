/* Writes a long JSON trace as other programs write them: json_trace chrome|pytorch MEGABYTES FILE.
 *
 * chrome: one event a line, begin and end of tasks, complete events with small args, in order of time to within a few
 * events. pytorch: complete events with a dozen args over several lines, operators of the CPU first, kernels of the GPU
 * after them, flows between the two; times are wall-clock microseconds with decimals. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 88172645463325252u;

static uint64_t random_below(uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % n;
}

static void write_chrome(FILE *f, uint64_t bytes)
{
    static const char *const names[] = {"ThreadControllerImpl::RunTask",
                                        "SimpleWatcher::OnHandleReady",
                                        "V8.GCScavenger",
                                        "Graphics.Pipeline",
                                        "LocalFrameView::layout",
                                        "ResourceDispatcher"};
    static const char *const cats[] = {"toplevel", "mojom", "v8", "viz,benchmark", "blink,devtools.timeline",
                                       "loading"};
    uint64_t ts = 123456789000;
    fputs("{\"traceEvents\":[\n", f);
    for (uint64_t i = 0; (uint64_t)ftell(f) < bytes; i++) {
        unsigned kind = (unsigned)random_below(6), thread = (unsigned)(i % 24);
        ts += 4 + random_below(12);
        fprintf(f,
                "%s{\"args\":{\"src_file\":\"../../base/task/sequence_manager/file_%u.cc\",\"src_func\":\"DoWork\","
                "\"chrome_task_annotator\":{\"delay_policy\":\"PRECISE\",\"task_delay_us\":%" PRIu64
                "}},\"cat\":\"%s\","
                "\"dur\":%" PRIu64 ",\"name\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tdur\":%" PRIu64
                ",\"tid\":%u,\"ts\":%" PRIu64 ",\"tts\":%" PRIu64 "}",
                i ? ",\n" : "", (unsigned)random_below(300), random_below(100000), cats[kind], random_below(96),
                names[kind], 1000 + thread / 6, random_below(200), 2000 + thread, ts, ts / 3);
    }
    fputs("\n],\"metadata\":{\"product-version\":\"Chrome/120\",\"num-cpus\":8}}\n", f);
}

static void write_pytorch(FILE *f, uint64_t bytes)
{
    static const char *const names[] = {"aten::linear",     "aten::addmm",
                                        "aten::layer_norm", "autograd::engine::evaluate_function: AddmmBackward0",
                                        "aten::copy_",      "aten::mul"};
    uint64_t ns = 1700000000000000000u, i = 0;
    fputs(
        "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU\"}],\n  \"traceEvents\": [\n",
        f);
    for (; (uint64_t)ftell(f) < bytes; i++) {
        uint64_t dur = 500 + random_below(14000);
        ns += 5000 + random_below(30000);
        if (i % 3 != 2) {
            fprintf(f,
                    "%s  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 4711, \"tid\": %u,\n    "
                    "\"ts\": "
                    "%" PRIu64 ".%03u, \"dur\": %" PRIu64 ".%03u,\n    \"args\": {\n      \"External id\": %" PRIu64
                    ",\"Record function id\": %" PRIu64 ", \"Sequence number\": %" PRIu64
                    ", \"Fwd thread id\": 0, \"Ev Idx\": %" PRIu64 "\n    }\n  }",
                    i ? ",\n" : "", names[random_below(6)], 4711 + (unsigned)(i % 4), ns / 1000, (unsigned)(ns % 1000),
                    dur / 1000, (unsigned)(dur % 1000), i, i % 1000, i / 2, i);
        } else {
            fprintf(
                f,
                ",\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void gemm_kernel_%u<float, 128>(float "
                "const*, "
                "int)\", \"pid\": 0, \"tid\": 7,\n    \"ts\": %" PRIu64 ".%03u, \"dur\": %" PRIu64
                ".%03u,\n    \"args\": {\n      \"External id\": %" PRIu64
                ",\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": %" PRIu64
                ",\n      \"registers per thread\": 64,\n      \"shared memory\": 0,\n      \"blocks per SM\": "
                "1.185185,\n      \"warps per SM\": 4.740741,\n      \"grid\": [128, 1, 1],\n      \"block\": [128, 1, "
                "1],\n      \"est. achieved occupancy %%\": 12\n    }\n  }",
                (unsigned)random_below(50), (ns + 5000) / 1000, (unsigned)((ns + 5000) % 1000), (uint64_t)0,
                (unsigned)random_below(190), i - 1, i);
        }
    }
    fputs("\n  ],\n  \"traceName\": \"bench.pt.trace.json\"\n}\n", f);
}

int main(int argc, char **argv)
{
    bool chrome = argc == 4 && strcmp(argv[1], "chrome") == 0;
    if (argc != 4 || (!chrome && strcmp(argv[1], "pytorch") != 0)) {
        fprintf(stderr, "usage: json_trace chrome|pytorch MEGABYTES FILE\n");
        return 2;
    }
    FILE *f = fopen(argv[3], "w");
    if (!f) {
        perror(argv[3]);
        return 1;
    }
    (chrome ? write_chrome : write_pytorch)(f, strtoull(argv[2], NULL, 10) << 20);
    if (fclose(f) != 0) {
        perror(argv[3]);
        return 1;
    }
    return 0;
}
