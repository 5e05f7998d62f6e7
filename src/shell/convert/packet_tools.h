/* Tools over the packets of a trace, each on [IN] [OUT] behind positional 0. Results as those of a command. */
#ifndef MERIDIAN_SHELL_CONVERT_PACKET_TOOLS_H
#define MERIDIAN_SHELL_CONVERT_PACKET_TOOLS_H

#include "shell/shell.h"

int packets_to_text(struct shell *sh, struct error *err);
int packets_from_text(struct shell *sh, struct error *err);
int packets_decompress(struct shell *sh, struct error *err);

#endif
