// What the tabs do. Each scenario returns a text for the test, or throws.
'use strict';

const SERIES = (n) =>
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${n}) select i, i / 2.0, 'row' from n`;
const FOREVER = 'with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where i < 0';

function check(is, what) {
  if (!is) throw new Error(what);
}

const scenarios = {
  // Brings the trace in pieces, as the UI does with a file.
  async load(url) {
    const c = await Client.open(url);
    const trace = new Uint8Array(await (await fetch('trace')).arrayBuffer());
    for (let at = 0; at < trace.length; at += 300000) {
      await c.request(APPEND, field(101, trace.subarray(at, at + 300000)));
    }
    await c.request(FINALIZE);
    const {cells} = await c.query('select count(*), 0.5 from sched');
    check(cells[1] === 0.5, 'the double');
    return `sched ${cells[0]}`;
  },

  // Leaves in the middle of a query that never ends, and comes back.
  async cancel(url) {
    for (let i = 0; i < 3; i++) {
      const c = await Client.open(url);
      c.query(FOREVER);
      await new Promise((r) => setTimeout(r, 150));
      const status = await fetch(url.replace('ws:', 'http:').replace('websocket', 'status'));
      check(status.ok, 'the status while a query runs');
      const closed = new Promise((r) => (c.ws.onclose = r));
      c.ws.close(1000);
      check((await closed).wasClean, 'a clean end');
      const again = await Client.open(url);
      const start = performance.now();
      check((await again.query(`select ${i}`)).cells[0] === i, 'the answer after coming back');
      check(performance.now() - start < 5000, 'its time');
      again.ws.close();
    }
    return 'cancelled';
  },

  // Reads long answers while other tabs do the same.
  async read(url) {
    const c = await Client.open(url);
    await c.request(RESTORE);
    for (let round = 0; round < 3; round++) {
      let rows = 0, sum = 0, halves = 0;
      const {error} = await c.query(SERIES(100000), (cells) => {
        for (let i = 0; i < cells.length; i += 3) {
          rows++;
          sum += cells[i];
          halves += cells[i + 1];
        }
      });
      // The other tab may have reset the tables meanwhile: that is told, not hidden.
      check(error ? error.includes('reset') : rows === 100000 && sum === 5000050000 && halves === sum / 2, `sums ${rows} ${error}`);
      const many = await Promise.all(Array.from({length: 20}, (_, i) => c.query(`select ${i}, 'x'`)));
      check(many.every((m, i) => m.cells[0] === i), 'answers in their order');
    }
    return 'read';
  },

  // Plays what somebody has clicked, as often as the plan has parts: between two of them the page is loaded anew in the middle
  // of a query that never ends. The errors: [[part, place, text], ...].
  async session(url, name) {
    const part = Number(sessionStorage.getItem('part') ?? 0);
    const errors = JSON.parse(sessionStorage.getItem('errors') ?? '[]');
    const c = await Client.open(url);
    const plan = new Uint8Array(await (await fetch(`plan/${name}/${part}`)).arrayBuffer());
    let place = 0;
    for (const [, request] of fields(plan)) {
      const error = await c.play(request);
      if (error) errors.push([part, place, error]);
      place++;
    }
    const parts = Number(await (await fetch(`plan/${name}`)).text());
    if (part + 1 === parts) return JSON.stringify(errors);
    sessionStorage.setItem('part', part + 1);
    sessionStorage.setItem('errors', JSON.stringify(errors));
    c.query(FOREVER);
    await new Promise((r) => setTimeout(r, 50));
    location.reload();
    return null;
  },
};

async function main() {
  const [name, url] = decodeURIComponent(location.hash.slice(1)).split('|');
  let text;
  window.onerror = (m) => fetch(`result/${name}`, {method: 'POST', body: `error: ${m}`});
  try {
    text = await scenarios[name.split('-')[0]](url, name);
    if (text === null) return; // the page is loaded again
  } catch (e) {
    text = `error: ${e.stack}`;
  }
  document.title = text;
  await fetch(`result/${name}`, {method: 'POST', body: text});
}
main();
