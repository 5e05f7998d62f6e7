/* The program under the name traceconv: its modes are commands here. */
#include "shell/shell.h"

#include <stdint.h>
#include <string.h>

static const struct {
    const char *mode;
    const char *words[3]; /* in its place */
} modes[] = {
    {"systrace", {"convert", "systrace"}},    {"json", {"convert", "json"}},
    {"ctrace", {"convert", "ctrace"}},        {"text", {"convert", "text"}},
    {"profile", {"convert", "profile"}},      {"java_heap_profile", {"convert", "profile", "--java-heap"}},
    {"firefox", {"convert", "firefox"}},      {"symbolize", {"util", "symbolize"}},
    {"deobfuscate", {"util", "deobfuscate"}}, {"decompress_packets", {"util", "decompress_packets"}},
    {"binary", {"util", "text_to_binary"}},   {"bundle", {"bundle"}},
};

static size_t find(const char *arg)
{
    size_t i = 0;
    while (i < sizeof modes / sizeof *modes && strcmp(modes[i].mode, arg) != 0)
        i++;
    return i;
}

bool traceconv_is_mode(const char *arg)
{
    return find(arg) < sizeof modes / sizeof *modes;
}

int traceconv_words(int n, char **argv, int at, char **out)
{
    size_t mode = find(argv[at]);
    int made = 0;
    for (size_t i = 0; i < 3 && modes[mode].words[i]; i++)
        out[made++] = (char *)(uintptr_t)modes[mode].words[i];
    for (int i = 0; i < n; i++)
        if (i != at)
            out[made++] = argv[i];
    return made;
}
