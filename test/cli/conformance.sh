#!/bin/sh
# Compares tp_shell with recorded answers when they are at hand: conformance.sh SOURCE_DIR TP_SHELL GLOB
set -eu
shared=${MERIDIAN_SHARED:-$1/../shared}
if [ ! -x "$shared/conformance/run" ]; then
    echo "skipped: no recorded answers in $shared/conformance (MERIDIAN_SHARED names another place)"
    exit 77
fi
exec "$shared/conformance/run" "$2" --only "$3" -j 2
