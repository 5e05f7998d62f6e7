"""Runs trace-cmd in an instance of its own, also on kernels without a function tracer."""
INSTANCE = "meridian_anew"
WITHOUT_FUNCTIONS = f"""
i=/sys/kernel/tracing/instances/{INSTANCE}
[ -d /sys/kernel/tracing/instances ] || mount -t tracefs none /sys/kernel/tracing || exit 1
mkdir -p $i && e=$(mktemp) || exit 1
for f in /sys/kernel/tracing/set_*trace* $i/set_*trace* /proc/sys/kernel/ftrace_enabled; do
  [ ! -f $f ] || mount --bind $e $f || exit 1
done
trace-cmd "$@"
s=$?
rm -f $e
exit $s"""
