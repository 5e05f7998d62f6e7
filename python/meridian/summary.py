"""A trace summary as objects: fields are attributes, repeated ones lists, numbers of enums their names."""
import re

# Fields of TraceSummary, and of the messages in it, that are repeated (a test compares them with proto/).
REPEATED = frozenset("""aggregates column_names data_column_specs dependencies dimension dimensions dimensions_specs double_rhs filters
    groups input_columns int64_rhs interned_dimension_bundles interned_dimension_rows interned_dimension_specs
    interned_dimension_values metadata metric_bundles ordering_specs partition_columns queries referenced_modules row
    select_columns specs sql_expressions string_rhs values""".split())

TOKEN = re.compile(r'\s*(?:([A-Za-z_]\w*)|("(?:[^"\\]|\\.)*")|(-?(?:[\d.][\w.+-]*|inf|nan))|([{}:]))', re.S)
ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.S)
LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def _unescape(m):
    octal, hexadecimal, letter = m.groups()
    if letter is not None:
        return LETTERS.get(letter, letter)
    return bytes([int(octal, 8) & 255 if octal else int(hexadecimal, 16)])


class Message:
    """What is not set is None, or an empty list."""

    def __init__(self):
        self._fields = {}

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self._fields.get(name, [] if name in REPEATED else None)

    def HasField(self, name):  # as protobuf's
        return name in self._fields

    def __repr__(self):
        return "Message(%s)" % ", ".join("%s=%r" % f for f in self._fields.items())

    def _add(self, name, value):
        if name in REPEATED:
            self._fields.setdefault(name, []).append(value)
        elif name in self._fields:
            have = self._fields[name]
            self._fields[name] = have + [value] if isinstance(have, list) else [have, value]
        else:
            self._fields[name] = value


class TraceSummary(Message):
    """The whole; str() is its text form. SerializeToString() is the message: it is computed then, while the trace is open."""

    def __init__(self, text, serialize):
        super().__init__()
        self._text, self._serialize = text, serialize
        at = _parse(self, text, 0)
        if at != len(text.rstrip()):
            raise ValueError("the summary's text form has more than fields at %d" % at)

    def SerializeToString(self):
        return self._serialize()

    def __str__(self):
        return self._text


def _scalar(word, string, number):
    if string is not None:
        return ESCAPE.sub(_unescape, string[1:-1].encode()).decode("utf-8", "replace")
    if number is not None:
        return int(number) if re.fullmatch(r"-?\d+", number) else float(number)
    return {"true": True, "false": False, "inf": float("inf"), "nan": float("nan")}.get(word, word)


def _next(text, at):
    m = TOKEN.match(text, at)
    if not m:
        raise ValueError("the summary's text form cannot be read at %d" % at)
    return m


def _parse(message, text, at):
    """Fields up to a '}' or the end; where they end."""
    while TOKEN.match(text, at):
        m = _next(text, at)
        name = m.group(1)
        if name is None:
            return at
        m = _next(text, m.end())
        if m.group(4) == "{":
            value = Message()
            at = _parse(value, text, m.end())
            m = _next(text, at)  # '}'
        else:
            m = _next(text, m.end())  # behind ':'
            value = _scalar(*m.groups()[:3])
        message._add(name, value)
        at = m.end()
    return at
