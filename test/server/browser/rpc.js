// TraceProcessorRpc over a WebSocket, by hand.
'use strict';

const APPEND = 1, FINALIZE = 2, QUERY = 3, RESTORE = 7;
// Where the answer of each method stands, and where in it an error: queries, summaries, and the four of summarizers.
const ERRORS = {3: [203, 2], 15: [214, 3], 16: [215, 2], 17: [216, 2], 18: [217, 6], 19: [218, 1]};

function varint(n) {
  const out = [];
  for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 | 128);
  out.push(n);
  return out;
}

function concat(...parts) {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    out.set(p, at);
    at += p.length;
  }
  return out;
}

// One field: a number as varint; text or bytes with a length.
function field(id, value) {
  if (typeof value === 'number') return Uint8Array.from([...varint(id * 8), ...varint(value)]);
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
  return concat(Uint8Array.from([...varint(id * 8 + 2), ...varint(bytes.length)]), bytes);
}

function* fields(bytes) {
  let p = 0;
  const next = () => {
    let n = 0n, shift = 0n, b;
    do {
      b = bytes[p++];
      n |= BigInt(b & 127) << shift;
      shift += 7n;
    } while (b > 127);
    return n;
  };
  while (p < bytes.length) {
    const tag = Number(next()), wire = tag & 7;
    if (wire === 0) {
      yield [tag >> 3, next()];
    } else if (wire === 1) {
      yield [tag >> 3, bytes.subarray(p, p += 8)];
    } else {
      const n = Number(next());
      yield [tag >> 3, bytes.subarray(p, p += n)];
    }
  }
}

// Cells of a batch. Doubles are used where they lie: that throws unless they begin at a multiple of eight.
function cellsOf(batch) {
  let kinds = [], ints = [], doubles = [], strings = [], last = false;
  for (const [id, v] of fields(batch)) {
    if (id === 1) kinds = v;
    if (id === 2) for (let p = 0; p < v.length;) {
      let n = 0, scale = 1, b;
      do {
        b = v[p++];
        n += (b & 127) * scale;
        scale *= 128;
      } while (b > 127);
      ints.push(n);
    }
    if (id === 3) doubles = new Float64Array(v.buffer, v.byteOffset, v.length / 8);
    if (id === 5) strings = new TextDecoder().decode(v).split('\0');
    if (id === 6) last = v === 1n;
  }
  let i = 0, d = 0, s = 0;
  const cells = Array.from(kinds, (k) => (k === 2 ? ints[i++] : k === 3 ? doubles[d++] : k === 4 ? strings[s++] : null));
  return {cells, last};
}

class Client {
  static open(url) {
    return new Promise((resolve, reject) => {
      const c = new Client();
      c.seq = 0;
      c.replies = 0;
      c.waiting = [];
      c.ws = new WebSocket(url);
      c.ws.binaryType = 'arraybuffer';
      c.ws.onopen = () => resolve(c);
      c.ws.onerror = () => reject(new Error('no connection'));
      c.ws.onmessage = (e) => c.take(new Uint8Array(e.data));
    });
  }

  take(stream) {
    for (const [, message] of fields(stream)) {
      const m = Object.fromEntries(fields(message));
      if (m[5]) throw new Error(new TextDecoder().decode(m[5]));
      if (Number(m[1] ?? 0) !== this.replies++) throw new Error('a reply is missing');
      if (this.waiting[0](m)) this.waiting.shift();
    }
  }

  // `each` gets every message of the answer, and says whether it was the last.
  call(method, args, each) {
    return new Promise((resolve) => {
      this.waiting.push((m) => each(m, resolve));
      this.ws.send(field(1, concat(field(1, ++this.seq), field(2, method), args)));
    });
  }

  request(method, args = new Uint8Array()) {
    return this.call(method, args, (m, resolve) => (resolve(m), true));
  }

  // The rows' cells, or an Error's text.
  query(sql, onBatch) {
    const all = {cells: [], error: ''};
    return this.call(QUERY, field(103, field(1, sql)), (m, resolve) => {
      let done = false;
      for (const [id, v] of fields(m[203])) {
        if (id === 2) all.error = new TextDecoder().decode(v);
        if (id !== 3) continue;
        const {cells, last} = cellsOf(v);
        if (onBatch) onBatch(cells);
        else all.cells.push(...cells);
        done = last;
      }
      if (done) resolve(all);
      return done;
    });
  }

  // A recorded request: the text of the error that the answer has, or ''.
  play(recorded) {
    const m = [...fields(recorded)], method = Number(m.find(([id]) => id === 2)[1]);
    const args = concat(...m.filter(([id]) => id > 100).map(([id, v]) => field(id, v)));
    const [answer, failure] = ERRORS[method] ?? [];
    return this.call(method, args, (reply, resolve) => {
      let error = '', done = method !== QUERY;
      for (const [id, v] of reply[answer] ? fields(reply[answer]) : []) {
        if (id === failure) error = new TextDecoder().decode(v);
        if (method === QUERY && id === 3) done = cellsOf(v).last;
      }
      if (done || error) resolve(error);
      return done || error !== '';
    });
  }
}
