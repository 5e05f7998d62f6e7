"""Rows of a query: as objects, columns, or data frames of pandas, polars and Arrow, where these are installed."""
import ctypes
import struct

from . import _library as lib

ROWS_AT_ONCE = 4096


class Row:
    """One row: columns are attributes, and items by name or number."""

    __slots__ = ("_names", "_values")

    def __init__(self, names, values):
        self._names, self._values = names, values

    def __getattr__(self, name):
        try:
            return self._values[self._names[name]]
        except KeyError:
            raise AttributeError("the result has no column '%s', but %s" % (name, ", ".join(self._names))) from None

    def __getitem__(self, key):
        return self._values[key if isinstance(key, int) else self._names[key]]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __eq__(self, other):
        return tuple(self._values) == tuple(other)

    __dict__ = property(lambda self: self.as_dict())  # vars(row), as Perfetto's rows

    def as_dict(self):
        return {name: self._values[i] for name, i in self._names.items()}

    def __repr__(self):
        return "Row(%s)" % ", ".join("%s=%r" % item for item in self.as_dict().items())


def _column(cells, text, column):
    """The values of a column, one Python object each."""
    begin, end = column * cells.stride, column * cells.stride + cells.rows
    types, values, lens = cells.types[begin:end], cells.values[begin:end], cells.lens[begin:end]
    if all(t == lib.INT64 for t in types):
        return values
    out = []
    for t, v, n in zip(types, values, lens):
        if t == lib.INT64:
            out.append(v)
        elif t == lib.TEXT:
            out.append(text[v:v + n].decode("utf-8", "replace"))
        elif t == lib.DOUBLE:
            out.append(struct.unpack("d", struct.pack("q", v))[0])
        elif t == lib.BLOB:
            out.append(text[v:v + n])
        else:
            out.append(None)
    return out


class QueryResult:
    """An iterator over rows. What has been read of it is gone: ask again for more. The rows are read in batches, and the
    statement ends when the last is read, or with close()."""

    Row = Row

    def __init__(self, trace, handle):
        self._trace, self._handle = trace, handle
        self._cells = lib.Cells()
        self.column_names = [trace._library.tp_column_name(handle, c).decode()
                             for c in range(trace._library.tp_columns(handle))]
        self._names = {}
        for i, name in enumerate(self.column_names):
            self._names.setdefault(name, i)
        self._batch, self._at = [], 0

    def _fetch(self):
        """The next rows as columns; None at the end."""
        if self._handle is None:
            return None
        rc = self._trace._library.tp_step_many(self._handle, ROWS_AT_ONCE, ctypes.byref(self._cells))
        if rc < 0:
            error = self._trace._failure(rc)
            self.close()
            raise error
        if rc == 0:
            self.close()
            return None
        cells = self._cells
        text = ctypes.string_at(cells.bytes, cells.n_bytes) if cells.n_bytes else b""
        return [_column(cells, text, c) for c in range(len(self.column_names))]

    def __iter__(self):
        return self

    def __next__(self):
        if self._at >= len(self._batch):
            columns = self._fetch()
            if columns is None:
                raise StopIteration
            self._batch, self._at = list(zip(*columns)), 0
        self._at += 1
        return Row(self._names, self._batch[self._at - 1])

    def __len__(self):
        """Rows that are left. They are read and kept for this."""
        rest = self._batch[self._at:]
        while True:
            columns = self._fetch()
            if columns is None:
                break
            rest.extend(zip(*columns))
        self._batch, self._at = rest, 0
        return len(rest)

    def columns(self):
        """{name: [values]} of the rows that are left; a name that comes twice gets a number."""
        out = [list(c) for c in zip(*self._batch[self._at:])] or [[] for _ in self.column_names]
        self._batch, self._at = [], 0
        while True:
            columns = self._fetch()
            if columns is None:
                break
            for have, more in zip(out, columns):
                have.extend(more)
        named = {}
        for name, values in zip(self.column_names, out):
            key, n = name, 2
            while key in named:
                key, n = "%s_%d" % (name, n), n + 1
            named[key] = values
        return named

    def as_pandas_dataframe(self):
        try:
            import pandas
        except ImportError as e:
            raise ImportError("as_pandas_dataframe() needs pandas: apt install python3-pandas, or pip install pandas") from e
        return pandas.DataFrame(self.columns())

    def as_polars(self):
        import polars
        return polars.DataFrame(self.columns(), infer_schema_length=None)

    def as_arrow(self):
        import pyarrow
        return pyarrow.table(self.columns())

    def close(self):
        if self._handle is not None:
            self._trace._library.tp_result_close(self._handle)
            self._trace._results.discard(self)
            self._trace._library.tp_cells_free(ctypes.byref(self._cells))
            self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()
