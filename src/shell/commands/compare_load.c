/* Loads the recordings that are compared, one after the other. */
#include "shell/commands/compare_load.h"

#include "base/output_file.h"
#include "shell/commands/check.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Losses of data that no measure of the comparison is made of. A source that could not record something (an event that
 * the kernel does not have) misses it from beginning to end. */
static const char *const harmless[] = {"perf_*",  "heap*",          "v8_*",         "jit_*",
                                       "primes*", "android_video*", "simpleperf_*", "recording_source_incomplete"};

static bool is_harmless(const char *name)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (fnmatch(harmless[i], name, 0) == 0)
            return true;
    return false;
}

size_t compare_losses(struct shell *sh, char *text, size_t room)
{
    static const struct text_list none = {0};
    struct check_rules rules;
    struct problems problems = {0};
    size_t n = 0, kinds = 0;
    *text = 0;
    if (check_rules_parse(&rules, "data_loss", &none, NULL) == 0)
        check_collect(sh->tp, &rules, &problems);
    for (size_t i = 0; i < problems.n; i++) {
        const char *name = problems.p[i].stat.name;
        if (strcmp(problems.p[i].severity, "data_loss") != 0 || is_harmless(name) ||
            (i && strcmp(problems.p[i - 1].stat.name, name) == 0))
            continue;
        kinds++;
        int wrote = n < room ? snprintf(text + n, room - n, "%s%s", n ? ", " : "", name) : 0;
        n += wrote > 0 ? (size_t)wrote : 0;
    }
    vec_free(&problems);
    return kinds;
}

int compare_open(struct shell *sh, const char *path, struct error *err)
{
    struct stat st;
    sh->no_health_report = true;
    int rc = session_load(sh, &path, 1, err);
    if (rc == 0 && tp_loaded_bytes(sh->tp) == 0 && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
        rc = error_set(err, -MRD_EFORMAT, "%s: the file is empty: nothing was recorded", path);
    return rc;
}

void compare_close(struct shell *sh)
{
    tp_close(sh->tp);
    sh->tp = NULL;
}

int compare_add(struct shell *sh, struct run_set *set, const char *path, int side, const struct compare_hook *also,
                struct error *err)
{
    char lost[256];
    int rc = compare_open(sh, path, err);
    if (rc == 0) {
        bool lossy = compare_losses(sh, lost, sizeof lost) > 0;
        rc = run_set_add(set, sh->tp, path, side, lossy ? lost : NULL, err);
    }
    if (rc == 0 && also)
        rc = also->call(also->ctx, sh, path, side, err);
    compare_close(sh);
    return rc;
}

int compare_write(const char *path, void (*print)(struct text_out *o, const void *what), const void *what,
                  struct error *err)
{
    struct output_file file = {.fd = STDOUT_FILENO};
    int rc = path ? output_file_open(&file, path, err) : 0;
    if (rc < 0)
        return rc;
    struct text_out *out = mem_alloc(sizeof *out);
    if (out) {
        out_init(out, file.fd);
        print(out, what);
        rc = out_flush(out, err);
    } else {
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    }
    mem_free(out);
    return path ? output_file_close(&file, rc, err) : rc;
}
