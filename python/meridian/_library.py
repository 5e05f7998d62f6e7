"""libmeridian by ctypes: the functions of meridian/tp.h that the package uses."""
import ctypes
import ctypes.util
import os
import pathlib

NULL, INT64, DOUBLE, TEXT, BLOB = range(5)
NOTFOUND, SQL, INTERRUPTED = -6, -7, -8


class Config(ctypes.Structure):
    _fields_ = [("full_sort", ctypes.c_bool), ("no_ftrace_raw", ctypes.c_bool), ("all_text_events", ctypes.c_bool),
                ("analyze_proto_content", ctypes.c_bool),
                ("crop_track_events", ctypes.c_bool), ("ignore_ftrace_parse_errors", ctypes.c_bool),
                ("no_native_plans", ctypes.c_bool), ("allow_sql_file_access", ctypes.c_bool), ("no_mmap", ctypes.c_bool),
                ("memory_limit", ctypes.c_uint64), ("cache_dir", ctypes.c_char_p), ("cache_bytes", ctypes.c_uint64),
                ("threads", ctypes.c_uint), ("clock_model", ctypes.c_int), ("sync_method", ctypes.c_int),
                ("file_clocks", ctypes.POINTER(ctypes.c_char_p)), ("n_file_clocks", ctypes.c_size_t),
                ("sync_reference", ctypes.c_char_p),
                ("progress", ctypes.c_void_p), ("progress_ctx", ctypes.c_void_p),
                ("progress_step", ctypes.c_void_p), ("open_code", ctypes.c_void_p), ("open_code_ctx", ctypes.c_void_p)]


class Cells(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_size_t), ("stride", ctypes.c_size_t), ("types", ctypes.POINTER(ctypes.c_uint8)),
                ("values", ctypes.POINTER(ctypes.c_int64)), ("lens", ctypes.POINTER(ctypes.c_uint32)),
                ("bytes", ctypes.POINTER(ctypes.c_char)), ("n_bytes", ctypes.c_size_t), ("cells_cap", ctypes.c_size_t),
                ("bytes_cap", ctypes.c_size_t)]


class Stat(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("severity", ctypes.c_char_p), ("source", ctypes.c_char_p),
                ("description", ctypes.c_char_p), ("value", ctypes.c_int64), ("idx", ctypes.c_int64),
                ("machine", ctypes.c_uint32), ("indexed", ctypes.c_bool), ("of_trace", ctypes.c_bool),
                ("machine_name", ctypes.c_char_p)]


class Spec(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_void_p), ("len", ctypes.c_size_t), ("format", ctypes.c_int), ("name", ctypes.c_char_p)]


class Summary(ctypes.Structure):
    _fields_ = [("specs", ctypes.POINTER(Spec)), ("n_specs", ctypes.c_size_t), ("metrics", ctypes.POINTER(ctypes.c_char_p)),
                ("n_metrics", ctypes.c_size_t), ("all_metrics", ctypes.c_bool), ("metadata_query", ctypes.c_char_p),
                ("text", ctypes.c_bool)]


SPEC_GUESS, SPEC_TEXT, SPEC_BINARY = range(3)
META_ALL = 31

_P, _S, _N = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
_FUNCTIONS = {  # name: (result, arguments)
    "tp_open": (ctypes.c_int, [ctypes.POINTER(_P), ctypes.POINTER(Config)]),
    "tp_connect": (ctypes.c_int, [ctypes.POINTER(_P), _S]),
    "tp_close": (None, [_P]),
    "tp_error": (_S, [_P]),
    "tp_interrupt": (None, [_P]),
    "tp_load": (ctypes.c_int, [_P, _S]),
    "tp_feed": (ctypes.c_int, [_P, _S, _N]),
    "tp_finish": (ctypes.c_int, [_P]),
    "tp_query": (ctypes.c_int, [_P, _S, ctypes.POINTER(_P)]),
    "tp_columns": (ctypes.c_int, [_P]),
    "tp_column_name": (_S, [_P, ctypes.c_int]),
    "tp_step_many": (ctypes.c_int, [_P, _N, ctypes.POINTER(Cells)]),
    "tp_cells_free": (None, [ctypes.POINTER(Cells)]),
    "tp_result_close": (None, [_P]),
    "tp_restore_initial_tables": (ctypes.c_int, [_P]),
    "tp_add_sql_dir": (ctypes.c_int, [_P, _S, _S, ctypes.c_bool]),
    "tp_stats_next": (ctypes.c_bool, [_P, ctypes.POINTER(_N), ctypes.POINTER(Stat)]),
    "tp_export_sqlite": (ctypes.c_int, [_P, _S]),
    "tp_summarize": (ctypes.c_int, [_P, ctypes.POINTER(Summary), ctypes.POINTER(_P), ctypes.POINTER(_N)]),
    "tp_metatrace_start": (None, [_P, ctypes.c_uint, _N]),
    "tp_metatrace_stop": (ctypes.c_int, [_P, ctypes.POINTER(_P), ctypes.POINTER(_N)]),
    "tp_free": (None, [_P]),
    "tp_machine_name": (_S, [_P, ctypes.c_uint32]),
}


def _candidates():
    """Where the library may be, the likeliest first."""
    named = os.environ.get("MERIDIAN_LIBRARY")
    if named:
        yield named
        return
    here = pathlib.Path(__file__).resolve().parent
    for beside in (here, here.parent.parent / "build" / "release"):  # in a wheel; in a checkout
        for name in ("libmeridian.so", "libmeridian.so.0"):
            if (beside / name).exists():
                yield str(beside / name)
    yield "libmeridian.so.0"
    found = ctypes.util.find_library("meridian")
    if found:
        yield found


def load():
    tried = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as e:
            tried.append(str(e))
            continue
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        return library
    raise ImportError("meridian: libmeridian.so is not installed; build it with make, or name it in MERIDIAN_LIBRARY (%s)"
                      % "; ".join(tried))
