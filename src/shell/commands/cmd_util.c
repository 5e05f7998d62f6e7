/* tp_shell util: finds the mode and runs it. */
#include "base/suggest.h"
#include "shell/commands/util.h"
#include "shell/convert/packet_tools.h"

#include <string.h>

static const struct {
    const char *name;
    int (*run)(struct shell *sh, struct error *err);
} modes[] = {
    {"merge", util_merge},
    {"symbolize", util_symbolize},
    {"deobfuscate", util_deobfuscate},
    {"decompress_packets", packets_decompress},
    {"text_to_binary", packets_from_text},
};

int cmd_util(struct shell *sh, struct error *err)
{
    if (sh->opt.positionals.n == 0)
        return error_set(err, -MRD_EINVALID,
                         "util: a mode is needed: merge, text_to_binary, decompress_packets, symbolize, deobfuscate "
                         "(tp_shell help util)");
    const char *name = sh->opt.positionals.p[0];
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, name) != 0)
            continue;
        int rc = modes[i].run(sh, err);
        return rc < 0 ? error_prefix(err, "util") : rc;
    }
    struct suggestion s = suggest(name, strlen(name));
    char text[80];
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        suggest_among(&s, modes[i].name);
    return error_set(err, -MRD_EINVALID,
                     "util: unknown mode '%s' (merge, text_to_binary, decompress_packets, symbolize, deobfuscate)%s",
                     name, suggest_text(&s, "", text, sizeof text));
}
