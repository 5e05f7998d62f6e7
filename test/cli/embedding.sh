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
LD_LIBRARY_PATH=$(dirname "$library") # where ldconfig would have found it
export LD_LIBRARY_PATH
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

# The other library: the program of docs/producing.md, recorded by a service of its own, by the commands of that page.
library=$(find "$dir/prefix" -name libmeridian-producer.a)
if nm -g --defined-only "$library" |
    awk 'NF == 3 && $3 !~ /^mrd_(producer|data_source|writer|packet|message|put)_/ { print; bad = 1 } END { exit !bad }'; then
    echo "libmeridian-producer.a shows names that are not in its header"
    exit 1
fi
page=$source/docs/producing.md
sed -n '/^```c$/,/^```$/p' "$page" | sed '/^```/d' >"$dir/ticks.c"
# shellcheck disable=SC2046
"$@" -Wall -Werror "$dir/ticks.c" $(pkg-config --cflags --libs meridian-producer) -o "$dir/ticks"
# shellcheck disable=SC2046
"$@" -std=c11 -D_GNU_SOURCE "$source/examples/track_events.c" $(pkg-config --cflags --libs meridian-producer) -o "$dir/events"
export PERFETTO_PRODUCER_SOCK_NAME="$dir/producer.sock" PERFETTO_CONSUMER_SOCK_NAME="$dir/consumer.sock"
PATH=$dir/prefix/bin:$PATH
tracebox traced &
traced=$!
trap 'kill $traced; rm -rf "$dir"' EXIT
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ -S "$PERFETTO_CONSUMER_SOCK_NAME" ] && break
    sleep 0.3
done
sed -n '/^tracebox perfetto/,/^wait$/p' "$page" | sed 's/^wait$/wait $!/' >"$dir/record.sh"
(cd "$dir" && sh -eu record.sh)
[ "$(tp_shell query "$dir/ticks.pftrace" "select name, count(*) as n from slice group by name" 2>/dev/null | sed -n 2p)" = '"tick",100' ]
