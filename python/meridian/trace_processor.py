"""The interface of Perfetto's Python package, so that notebooks run unchanged:

    from meridian.trace_processor import TraceProcessor, TraceProcessorConfig
    tp = TraceProcessor(trace="trace.pftrace")
    for row in tp.query("select ts, name from slice"):
        print(row.ts, row.name)
"""
import dataclasses
import typing

from . import SqlError, Trace, TraceError
from .result import QueryResult

TraceProcessorException = TraceError
QueryResultIterator = QueryResult


@dataclasses.dataclass
class TraceProcessorConfig:
    """Those fields that mean something here are used; what starts and finds Perfetto's program is accepted and left."""
    bin_path: typing.Optional[str] = None
    unique_port: bool = True
    verbose: bool = False
    ingest_ftrace_in_raw: bool = False
    enable_dev_features: bool = False
    resolver_registry: typing.Any = None
    load_timeout: int = 2
    extra_flags: typing.Optional[typing.List[str]] = None
    add_sql_packages: typing.Optional[typing.List[typing.Any]] = None


class TraceProcessor:
    def __init__(self, trace=None, addr=None, config=None, file_path=None):
        if trace is None:
            trace = file_path
        if trace is not None and addr is not None:
            raise TraceError("give a trace or an address, not both")
        self.config = config or TraceProcessorConfig()
        if addr is not None:
            self._trace = Trace.connect(addr)
        else:
            self._trace = Trace(*([] if trace is None else [trace]), no_ftrace_raw=not self.config.ingest_ftrace_in_raw)
        for package in self.config.add_sql_packages or []:
            self._trace.add_sql_package(getattr(package, "path", package), getattr(package, "package", None))

    def query(self, sql):
        return self._trace.query(sql)

    def query_dict(self, sql):
        return self._trace.query_dict(sql)

    def metric(self, metrics):
        raise TraceError("metrics of the first generation are not computed: use trace summaries (tp_shell summarize)")

    def enable_metatrace(self):
        raise TraceError("metatrace is recorded by tp_shell -m FILE")

    def close(self):
        self._trace.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


__all__ = ["TraceProcessor", "TraceProcessorConfig", "TraceProcessorException", "QueryResultIterator", "SqlError"]
