#!/bin/sh
# The library as another program meets it: installed, found by pkg-config, and the program of docs/embedding.md compiled and run.
# embedding.sh SOURCE_DIR BUILD_DIR TP_SHELL COMPILER [FLAGS]
set -eu
source=$1 build=$2 shell=$3
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cmake --install "$build" --prefix "$dir/moved" >/dev/null
mv "$dir/moved" "$dir/prefix" # the pkg-config file must not mind
PKG_CONFIG_PATH=$(dirname "$(find "$dir/prefix" -name meridian.pc)")
export PKG_CONFIG_PATH
library=$(find "$dir/prefix" -name libmeridian.a)
if nm -g --defined-only "$library" | awk 'NF == 3 && $3 !~ /^tp_/ { print; bad = 1 } END { exit !bad }'; then
    echo "libmeridian.a shows names that do not begin with tp_"
    exit 1
fi
[ "$(pkg-config --modversion meridian)" = "$("$shell" --version | sed -n 's/^Meridian v//p')" ]

trace=$source/test/data/linux-sched.pftrace
sed -n '/^```c$/,/^```$/p' "$source/docs/embedding.md" | sed '/^```/d' >"$dir/ran.c"
# shellcheck disable=SC2046
"$@" -Wall -Werror "$dir/ran.c" $(pkg-config --cflags --libs meridian) -o "$dir/ran"
"$dir/ran" "$trace" >"$dir/ran.out"
cat "$dir/ran.out"
"$shell" query "$trace" "select name || ' ran ' || count(*) || ' times' as t from sched join thread using (utid)
    where name = 'sh' or name = 'rcu_preempt' group by name order by name" 2>/dev/null | sed '1d; s/"//g' >"$dir/want"
cmp "$dir/ran.out" "$dir/want"
[ -s "$dir/want" ]
if "$dir/ran" "$dir/none" 2>"$dir/err"; then exit 1; fi
grep -q "none: No such file" "$dir/err"

# shellcheck disable=SC2046
"$@" "$source/examples/ask.c" $(pkg-config --cflags --libs meridian) -o "$dir/ask"
[ "$("$dir/ask" "$trace" "select 6 * 7, 'x', null")" = "$(printf '42\tx\tNULL')" ]
