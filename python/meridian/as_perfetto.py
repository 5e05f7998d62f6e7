"""Lets programs written for Perfetto's Python package run unchanged:

    python3 -m meridian.as_perfetto notebook.py ARGUMENTS...

or `import meridian.as_perfetto` before they import `perfetto`. In this process the names of Perfetto's package then stand
for ours."""
import runpy
import sys
import types

from . import batch_trace_processor, trace_processor

NAMES = {"perfetto.trace_processor": trace_processor, "perfetto.trace_processor.api": trace_processor,
         "perfetto.batch_trace_processor": batch_trace_processor, "perfetto.batch_trace_processor.api": batch_trace_processor}


def install():
    package = types.ModuleType("perfetto", __doc__)
    package.__path__ = []
    package.trace_processor, package.batch_trace_processor = trace_processor, batch_trace_processor
    trace_processor.api, batch_trace_processor.api = trace_processor, batch_trace_processor
    sys.modules["perfetto"] = package
    sys.modules.update(NAMES)


install()

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python3 -m meridian.as_perfetto PROGRAM.py ARGUMENTS...")
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
