#!/bin/sh
# Runs the tests of several builds, one build after the other, and says at the end how each went.
#
#   run-tests.sh BUILD... [-- CTEST_ARGS...]      BUILD: a folder of build/
#
# Most end-to-end tests sleep more than they compute: three times as many tests run at once as there are processors.
# What fails then runs once more, one test at a time: a defect fails again, and a test that only lacked a processor is named.
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
    rm -f "build/$build/tests-alone.log"
    ctest --test-dir "build/$build" --output-on-failure -j $((3 * $(nproc))) --timeout 600 --output-log "build/$build/tests.log" "$@" && continue
    echo "== tests of build/$build that failed, one at a time"
    ctest --test-dir "build/$build" --rerun-failed --output-on-failure --timeout 600 --output-log "build/$build/tests-alone.log" || failed=1
done
summary='/^The following tests/,/^$/p; /tests passed,/p; /^Total Test time/p'
for build in $builds; do
    echo "== build/$build"
    sed -n "$summary" "build/$build/tests.log"
    if [ -f "build/$build/tests-alone.log" ]; then
        echo "== build/$build, what failed, one at a time"
        sed -n "$summary" "build/$build/tests-alone.log"
    fi
done
exit $failed
