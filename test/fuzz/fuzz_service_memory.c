/* The programs of fuzz_service with memory running out at each call of the service's allocator. */
#define WITHOUT_MEMORY
#include "fuzz_service.c"
