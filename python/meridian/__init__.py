"""Traces in Python.

    from meridian import Trace

    with Trace("trace.pftrace") as trace:
        for row in trace.query("select name, count(*) as n from slice group by name"):
            print(row.name, row.n)
        frame = trace.query("select ts, dur, utid from sched").as_pandas_dataframe()

Trace("a.pftrace", "b.pftrace") puts several traces onto one timeline; Trace.connect("localhost:9001") asks a trace that
`tp_shell server` has loaded. Notebooks written for Perfetto's package run with

    from meridian.trace_processor import TraceProcessor, TraceProcessorConfig
"""
import ctypes
import os
import weakref

from . import _library as lib
from .result import QueryResult, Row

__all__ = ["Trace", "QueryResult", "Row", "Stat", "TraceError", "SqlError"]
__version__ = "0.1.0"


class TraceError(Exception):
    """A trace that cannot be read, a server that does not answer; the text says what and why."""


class SqlError(TraceError):
    """A statement that failed; the text points at the place."""


class Stat:
    """One figure of the trace's health: name, value, severity ("info", "notice", "data_loss", "error"), and where."""

    def __init__(self, s):
        self.name, self.value, self.severity = s.name.decode(), s.value, s.severity.decode()
        self.source, self.description = s.source.decode(), (s.description or b"").decode()
        self.idx = s.idx if s.indexed else None
        self.machine = None if s.of_trace else s.machine
        self.machine_name = s.machine_name.decode() if s.machine_name else None

    def __repr__(self):
        return "Stat(%s=%d, %s)" % (self.name, self.value, self.severity)


class Trace:
    """Traces on one timeline. `paths` are files or directories; bytes and file objects are read to their end. Options
    are those of struct tp_config: full_sort, no_ftrace_raw, crop_track_events, threads; cache_dir="DIR" keeps snapshots
    there and opens those ("": the user's cache)."""

    OPTIONS = {name for name, _ in lib.Config._fields_} - {"progress", "progress_ctx", "progress_step", "open_code", "open_code_ctx", "sync_reference", "file_clocks", "n_file_clocks"}

    def __init__(self, *paths, **options):
        unknown = set(options) - self.OPTIONS
        if unknown:
            raise TypeError("Trace has no option '%s', but %s" % (sorted(unknown)[0], ", ".join(sorted(self.OPTIONS))))
        if options.get("cache_dir") is not None:
            options["cache_dir"] = os.fsencode(options["cache_dir"])
        self._library = lib.load()
        self._handle = ctypes.c_void_p()
        self._results = weakref.WeakSet()
        self._check(self._library.tp_open(ctypes.byref(self._handle), lib.Config(**options)))
        try:
            for path in paths:
                self._load(path)
            self._check(self._library.tp_finish(self._handle))
        except BaseException:
            self.close()
            raise

    @classmethod
    def connect(cls, address):
        """Asks the trace of a server: "host:port", or the path of its socket."""
        self = cls.__new__(cls)
        self._library = lib.load()
        self._handle = ctypes.c_void_p()
        self._results = weakref.WeakSet()
        try:
            self._check(self._library.tp_connect(ctypes.byref(self._handle), address.encode()))
        except BaseException:
            self.close()
            raise
        return self

    def _failure(self, code):
        text = self._library.tp_error(self._handle).decode("utf-8", "replace") if self._handle else ""
        if code == lib.INTERRUPTED:
            return KeyboardInterrupt(text)
        return (SqlError if code == lib.SQL else TraceError)(text or "libmeridian failed with code %d" % code)

    def _check(self, code):
        if code < 0:
            raise self._failure(code)

    def _load(self, source):
        if isinstance(source, (str, os.PathLike)):
            self._check(self._library.tp_load(self._handle, os.fsencode(source)))
            return
        pieces = [bytes(source)] if isinstance(source, (bytes, bytearray, memoryview)) else \
            iter(lambda: source.read(1 << 20), b"") if hasattr(source, "read") else source
        for piece in pieces:
            piece = bytes(piece)
            self._check(self._library.tp_feed(self._handle, piece, len(piece)))

    def _open(self):
        if not self._handle:
            raise TraceError("the trace is closed")

    def query(self, sql):
        """Runs one or more statements; the rows of the last one."""
        self._open()
        result = ctypes.c_void_p()
        self._check(self._library.tp_query(self._handle, sql.encode(), ctypes.byref(result)))
        rows = QueryResult(self, result)
        self._results.add(rows)
        return rows

    def query_dict(self, sql):
        """The rows as dictionaries."""
        return [row.as_dict() for row in self.query(sql)]

    def stats(self):
        """What was lost or went wrong, and other figures that are not 0."""
        at, stat, out = ctypes.c_size_t(), lib.Stat(), []
        while self._library.tp_stats_next(self._handle, ctypes.byref(at), ctypes.byref(stat)):
            out.append(Stat(stat))
        return out

    def _bytes(self, code, data, length):
        """What a call made, which is given back."""
        self._check(code)
        try:
            return ctypes.string_at(data, length.value)
        finally:
            self._library.tp_free(data)

    def summarize(self, specs, metrics=None, metadata_query=None, text=False):
        """Metrics by specs (texts, or messages as bytes): a TraceSummary as bytes, or with `text` in text form. `metrics`: their
        ids; None: all that the specs have."""
        self._open()
        encoded = [(s.encode(), lib.SPEC_TEXT) if isinstance(s, str) else (bytes(s), lib.SPEC_BINARY) for s in specs]
        pieces = [ctypes.create_string_buffer(data, max(len(data), 1)) for data, _ in encoded]
        spec_list = (lib.Spec * len(encoded))(*[lib.Spec(ctypes.cast(p, ctypes.c_void_p), len(data), form, None)
                                                for p, (data, form) in zip(pieces, encoded)])
        ids = [m.encode() for m in metrics or []]
        what = lib.Summary(spec_list, len(encoded), (ctypes.c_char_p * len(ids))(*ids), len(ids), metrics is None,
                           metadata_query.encode() if metadata_query else None, text)
        data, length = ctypes.c_void_p(), ctypes.c_size_t()
        out = self._bytes(self._library.tp_summarize(self._handle, ctypes.byref(what), ctypes.byref(data), ctypes.byref(length)),
                          data, length)
        return out.decode("utf-8", "replace") if text else out

    def metatrace_start(self, categories=lib.META_ALL, capacity=0):
        """Records what the library itself does, until metatrace_stop()."""
        self._open()
        self._library.tp_metatrace_start(self._handle, categories, capacity)

    def metatrace_stop(self):
        """What was recorded: a trace, as bytes."""
        self._open()
        data, length = ctypes.c_void_p(), ctypes.c_size_t()
        return self._bytes(self._library.tp_metatrace_stop(self._handle, ctypes.byref(data), ctypes.byref(length)), data, length)

    def add_sql_package(self, directory, package=None, replace=False):
        """The .sql files below a directory become modules to INCLUDE."""
        self._check(self._library.tp_add_sql_dir(self._handle, os.fsencode(directory),
                                                 package.encode() if package else None, replace))

    def export_sqlite(self, path):
        self._check(self._library.tp_export_sqlite(self._handle, os.fsencode(path)))

    def restore_initial_tables(self):
        """Drops what queries have created."""
        for r in list(self._results):
            r.close()
        self._check(self._library.tp_restore_initial_tables(self._handle))

    def interrupt(self):
        """Ends the statement that another thread runs."""
        self._library.tp_interrupt(self._handle)

    def close(self):
        for r in list(self._results):
            r.close()
        if self._handle:
            self._library.tp_close(self._handle)
            self._handle = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()
