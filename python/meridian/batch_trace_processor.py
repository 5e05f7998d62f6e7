"""Many traces asked at once, with the interface of Perfetto's BatchTraceProcessor."""
import dataclasses
import os
import typing
from concurrent.futures import ThreadPoolExecutor

from .trace_processor import TraceProcessor, TraceProcessorConfig


@dataclasses.dataclass
class BatchTraceProcessorConfig:
    tp_config: typing.Optional[TraceProcessorConfig] = None
    load_failure_handling: typing.Any = None
    execute_failure_handling: typing.Any = None


class BatchTraceProcessor:
    """`traces`: a list of what TraceProcessor takes. Each is loaded and asked by a thread; answers keep the order of the list. A
    failure of any is raised."""

    def __init__(self, traces, config=None):
        traces = [traces] if isinstance(traces, (str, bytes, os.PathLike)) else list(traces)
        config = config or BatchTraceProcessorConfig()
        self.tps, self._names = [], [str(t) if isinstance(t, (str, os.PathLike)) else None for t in traces]
        self._pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
        loads = [self._pool.submit(TraceProcessor, trace=t, config=config.tp_config) for t in traces]
        try:
            for load in loads:
                self.tps.append(load.result())
        except BaseException:
            for load in loads[len(self.tps):]:
                if not load.cancel() and not load.exception():
                    self.tps.append(load.result())
            self.close()
            raise

    def execute(self, fn):
        """fn(TraceProcessor) for each trace: a list of what it gives."""
        return list(self._pool.map(fn, self.tps))

    def query(self, sql):
        """A data frame for each trace."""
        return self.execute(lambda tp: tp.query(sql).as_pandas_dataframe())

    def query_dict(self, sql):
        """A list of rows as dictionaries for each trace; needs no pandas."""
        return self.execute(lambda tp: tp.query_dict(sql))

    def query_and_flatten(self, sql):
        """One data frame of all rows, with a column _path that says which trace they are from."""
        return self.execute_and_flatten(lambda tp: tp.query(sql).as_pandas_dataframe())

    def execute_and_flatten(self, fn):
        import pandas
        frames = self.execute(fn)
        for name, frame in zip(self._names, frames):
            if name is not None:
                frame["_path"] = name
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

    def query_single_result(self, sql):
        """The one value of the one row for each trace."""
        def only(tp):
            values = [tuple(row) for row in tp.query(sql)]
            if len(values) != 1 or len(values[0]) != 1:
                raise ValueError("query_single_result() wants one row of one column; the trace gave %d rows" % len(values))
            return values[0][0]
        return self.execute(only)

    def metric(self, metrics):
        return self.execute(lambda tp: tp.metric(metrics))

    def close(self):
        self._pool.shutdown()
        for tp in self.tps:
            tp.close()
        self.tps = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


__all__ = ["BatchTraceProcessor", "BatchTraceProcessorConfig"]
