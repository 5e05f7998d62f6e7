/* Runs a fuzz target over files and folders, its corpus replayed as a test: fuzz_replay TARGET FILE... */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Each target has its name in place of LLVMFuzzerTestOneInput; few have something to initialize. */
#define FUZZ_TARGET(name)                                                                                              \
    int fuzz_##name(const uint8_t *data, size_t size);                                                                 \
    int fuzz_##name##_initialize(int *argc, char ***argv) __attribute__((weak));
#include "fuzz_targets.def"
#undef FUZZ_TARGET

struct target {
    const char *name;
    int (*one_input)(const uint8_t *data, size_t size);
    int (*initialize)(int *argc, char ***argv);
};
static const struct target targets[] = {
#define FUZZ_TARGET(name) {#name, fuzz_##name, fuzz_##name##_initialize},
#include "fuzz_targets.def"
#undef FUZZ_TARGET
};

static int run_file(const struct target *t, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        if (f)
            fclose(f);
        return -1;
    }
    size_t size = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(size ? size : 1); /* exactly sized, so that ASan sees each byte read too far */
    int ok = data && fread(data, 1, size, f) == size;
    fclose(f);
    if (ok)
        t->one_input(data, size);
    else
        fprintf(stderr, "%s: cannot read\n", path);
    free(data);
    return ok ? 1 : -1;
}

/* The number of inputs run, -1 on failure. */
static int run_path(const struct target *t, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return run_file(t, path);
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort), run = 0;
    for (int i = 0; i < n; i++) {
        char child[4096];
        int got = 0;
        if (names[i]->d_name[0] != '.' && run >= 0) {
            snprintf(child, sizeof child, "%s/%s", path, names[i]->d_name);
            got = run_path(t, child);
        }
        run = got < 0 || run < 0 ? -1 : run + got;
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return n < 0 ? -1 : run;
}

int main(int argc, char **argv)
{
    const struct target *t = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].name, argv[1]) == 0)
            t = &targets[i];
    if (!t) {
        fprintf(stderr, "usage: fuzz_replay TARGET FILE...; the targets are in test/fuzz/CMakeLists.txt\n");
        return 2;
    }
    argc--, argv++;
    if (t->initialize)
        t->initialize(&argc, &argv);
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int run = argv[i][0] == '-' ? 0 : run_path(t, argv[i]); /* a target may have added a flag for libFuzzer */
        if (run < 0)
            return 1;
        total += run;
    }
    printf("%d inputs\n", total);
    return total > 0 ? 0 : 1; /* a corpus that is not there tests nothing */
}
