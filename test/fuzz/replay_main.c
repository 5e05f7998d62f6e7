/* Runs a fuzz target over files and folders given on the command line: the corpus replayed as a test. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#pragma weak LLVMFuzzerInitialize

static int run_file(const char *path)
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
        LLVMFuzzerTestOneInput(data, size);
    else
        fprintf(stderr, "%s: cannot read\n", path);
    free(data);
    return ok ? 1 : -1;
}

/* The number of inputs run, -1 on failure. */
static int run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return run_file(path);
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort), run = 0;
    for (int i = 0; i < n; i++) {
        char child[4096];
        int got = 0;
        if (names[i]->d_name[0] != '.' && run >= 0) {
            snprintf(child, sizeof child, "%s/%s", path, names[i]->d_name);
            got = run_path(child);
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
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int run = argv[i][0] == '-' ? 0 : run_path(argv[i]); /* a target may have added a flag for libFuzzer */
        if (run < 0)
            return 1;
        total += run;
    }
    printf("%d inputs\n", total);
    return total > 0 ? 0 : 1; /* a corpus that is not there tests nothing */
}
