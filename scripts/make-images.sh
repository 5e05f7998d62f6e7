#!/bin/sh
# The pictures of the pages, from our own recordings: make-images.sh TP_SHELL [DIR]. Needs chromium.
set -eu
shell=$1
here=$(cd "$(dirname "$0")/.." && pwd)
to=${2:-$here/docs/images}
trace=$here/test/data/mm-calls.pftrace.gz
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$to"

# picture NAME WIDTH HEIGHT: of the page on standard input
picture() {
    cat >"$dir/$1.html"
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$dir/profile" --window-size="$2,$3" \
        --screenshot="$to/$1.png" "file://$dir/$1.html" >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
}

# The prompt: how long the calls of the client took, and how often that was so.
step="from slice s join slice a on a.name = replace(s.name, 'asked', 'answered') where s.name glob 'call * asked'"
line=".plot line select (s.ts - trace_start()) / 1e6 as ms, (a.ts - s.ts) / 1e6 as call_ms $step"
bars=".plot select m.name, count(*) as waits from thread_state t join thread using (utid) join machine m on m.id = machine_id where state = 'R' group by 1"
{
    echo '<body style="margin:0;background:#1e1e1e;color:#d4d4d4"><pre style="margin:12px;font:14px/1.05 DejaVu Sans Mono,monospace">'
    for command in "$line" "$bars"; do
        printf '&gt; %s\n' "$(printf %s "$command" | fold -s -w 80 | sed '2,$s/^/     /')"
        printf '.timer off\n%s\n' "$command" | "$shell" interactive "$trace" 2>/dev/null
        echo
    done
    echo '</pre></body>'
} | picture plot 790 330

# What the threads of both machines did while a request was on its way.
{
    echo '<body style="margin:8px;background:white">'
    "$shell" query --format csv "$trace" "include perfetto module export.to_svg;
        select export_to_svg((select ts from slice where name = 'call 60 asked') - 1000000, 25000000) as svg" 2>/dev/null |
        tail -n +2 | sed 's/^"//; s/"$//; s/""/"/g'
    echo '</body>'
} | picture timeline 1000 170
