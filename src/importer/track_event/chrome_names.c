/* The names that Chrome's thread and process types stand for. */
#include "importer/track_event/track_event_internal.h"

const char *track_event_chrome_thread_name(int32_t type)
{
    static const struct {
        int32_t type;
        const char *name;
    } names[] = {
        {1, "CrProcessMain"},
        {2, "ChromeIOThread"},
        {3, "ThreadPoolBackgroundWorker&"},
        {4, "ThreadPoolForegroundWorker&"},
        {5, "ThreadPoolSingleThreadForegroundBlocking&"},
        {6, "ThreadPoolSingleThreadBackgroundBlocking&"},
        {7, "ThreadPoolService"},
        {8, "Compositor"},
        {9, "VizCompositorThread"},
        {10, "CompositorTileWorker&"},
        {11, "ServiceWorkerThread&"},
        {50, "MemoryInfra"},
        {51, "StackSamplingProfiler"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].type == type)
            return names[i].name;
    return NULL;
}

const char *track_event_chrome_process_name(int32_t type)
{
    static const char *const names[] = {NULL,  "Browser",     "Renderer",   "Utility", "Zygote", "SandboxHelper",
                                        "Gpu", "PpapiPlugin", "PpapiBroker"};
    return type > 0 && type < (int32_t)(sizeof names / sizeof *names) ? names[type] : NULL;
}
