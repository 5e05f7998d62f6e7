"""The interface of Perfetto's Python package, so that notebooks run unchanged:

    from meridian.trace_processor import TraceProcessor, TraceProcessorConfig
    tp = TraceProcessor(trace="trace.pftrace")
    for row in tp.query("select ts, name from slice"):
        print(row.ts, row.name)
"""
import dataclasses
import typing
import warnings

from . import SqlError, Trace, TraceError
from .result import QueryResult
from .summary import TraceSummary

TraceProcessorException = TraceError
QueryResultIterator = QueryResult


class SqlPackage(typing.NamedTuple):
    """Modules of one's own: a folder, and the name of the package (None: the folder's)."""
    path: str
    package: typing.Optional[str] = None


@dataclasses.dataclass
class TraceProcessorConfig:
    """What starts and finds Perfetto's program is accepted and left; of extra_flags those in FLAGS are used."""
    bin_path: typing.Optional[str] = None
    unique_port: bool = True
    verbose: bool = False
    ingest_ftrace_in_raw: bool = False
    enable_dev_features: bool = False
    resolver_registry: typing.Any = None
    load_timeout: int = 2
    extra_flags: typing.Optional[typing.List[str]] = None
    add_sql_packages: typing.Optional[typing.List[typing.Any]] = None


# Flags of trace_processor_shell: options of ours, None: always so here.
FLAGS = {"--full-sort": "full_sort", "--no-ftrace-raw": "no_ftrace_raw", "--crop-track-events": "crop_track_events",
         "--dev": None, "--extra-checks": None}


def _options(config):
    options = {"no_ftrace_raw": not config.ingest_ftrace_in_raw}
    for flag in config.extra_flags or []:
        if flag not in FLAGS:
            warnings.warn("meridian: the flag %s means nothing here and is left out" % flag, stacklevel=4)
        elif FLAGS[flag]:
            options[FLAGS[flag]] = True
    return options


class TraceProcessor:
    """A trace (a path, bytes, an open file, a generator of bytes), or the one that a server has at `addr` ("host:port")."""

    def __init__(self, trace=None, addr=None, config=None, file_path=None):
        if trace is None:
            trace = file_path
        if trace is not None and addr is not None:
            raise TraceError("give a trace or an address, not both")
        self.config = config or TraceProcessorConfig()
        if addr is not None:
            self._trace = Trace.connect(addr.removeprefix("http://").rstrip("/"))
        else:
            self._trace = Trace(*([] if trace is None else [trace]), **_options(self.config))
        for package in self.config.add_sql_packages or []:
            self._trace.add_sql_package(getattr(package, "path", package), getattr(package, "package", None))

    def query(self, sql):
        """Rows of the last of the statements: an iterator, with as_pandas_dataframe()."""
        return self._trace.query(sql)

    def query_dict(self, sql):
        return self._trace.query_dict(sql)

    def metric(self, metrics):
        raise TraceError("metrics of the first generation are not computed: use trace summaries (tp_shell summarize)")

    def trace_summary(self, specs, metric_ids=None, metadata_query_id=None):
        """The metrics of specs (texts, or messages as bytes); all of them unless `metric_ids` names some."""
        given = list(specs), metric_ids, metadata_query_id
        return TraceSummary(self._trace.summarize(*given, text=True), lambda: self._trace.summarize(*given))

    def enable_metatrace(self):
        """Records what the library itself does."""
        self._trace.metatrace_start()

    def disable_and_read_metatrace(self):
        """What was recorded since: a trace, as bytes."""
        return self._trace.metatrace_stop()

    def close(self):
        self._trace.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


__all__ = ["TraceProcessor", "TraceProcessorConfig", "TraceProcessorException", "QueryResultIterator", "SqlError", "SqlPackage",
           "TraceSummary"]
