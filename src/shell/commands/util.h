/* The modes of `tp_shell util`: small tools over trace files. */
#ifndef MERIDIAN_SHELL_COMMANDS_UTIL_H
#define MERIDIAN_SHELL_COMMANDS_UTIL_H

#include "shell/shell.h"
#include "shell/trace_symbols.h"

/* Each is given the whole command line; positional 0 is the mode's name. Results as those of a command. */
int util_merge(struct shell *sh, struct error *err);
int util_symbolize(struct shell *sh, struct error *err);
int util_deobfuscate(struct shell *sh, struct error *err);

/* What `bundle` shares with them: where the command line and the environment say that symbols are, whether that is
 * anywhere, and what came of looking there, on standard error. */
int util_symbol_places(const struct shell *sh, struct symbol_places *p, struct error *err);
int util_check_places(const struct symbol_places *p, struct error *err);
void util_tell_symbols(const struct symbol_report *report, bool verbose);

/* The packets of the maps that are given, and with `environment` of those in PERFETTO_PROGUARD_MAP, appended to `w`;
 * *n is their number. A map of the environment that cannot be read is told and passed over, when others `may_fail`. */
int util_proguard_packets(const struct shell *sh, bool environment, bool may_fail, struct pb_writer *w, size_t *n,
                          struct error *err);

#endif
