#!/bin/sh
# Runs the tests of several builds, one build after the other, and says at the end how each went.
#
#   run-tests.sh BUILD... [-- CTEST_ARGS...]      BUILD: a folder of build/
#
# Most end-to-end tests sleep more than they compute: twice as many tests run at once as there are processors.
set -eu
cd "$(dirname "$0")/.."
builds=""
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    builds="$builds $1"
    shift
done
[ $# = 0 ] || shift

failed=0
for build in $builds; do
    echo "== tests of build/$build"
    ctest --test-dir "build/$build" --output-on-failure -j $((2 * $(nproc))) --timeout 600 --output-log "build/$build/tests.log" "$@" || failed=1
done
for build in $builds; do
    echo "== build/$build"
    sed -n '/^The following tests/,/^$/p; /tests passed,/p; /^Total Test time/p' "build/$build/tests.log"
done
exit $failed
