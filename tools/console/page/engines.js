// The list of engines, sorted, filtered and by pages; one engine in detail; load against capacity.
import { $, bar, element, number, share, stateElement, Table, time } from './dom.js';

const page_rows = 50;
const badness = { gone: 5, suspect: 4, unknown: 3, degraded: 2, draining: 1, starting: 1, ready: 0 };

export class Engines {
  constructor() {
    this.sort = 'state', this.reverse = false, this.page = 0, this.chosen = -1;
    const column = (key, title, cell, more = {}) => ({ key, title, cell, sort: true, number: true, ...more });
    this.table = new Table($('engine-table'), 'Engines', [
      column('name', 'engine', r => element('button', { type: 'button', class: 'link', onclick: () => this.open(r.e) }, r.name), { text: r => r.name, number: false }),
      column('cluster', 'cluster', r => r.cluster, { number: false }),
      column('state', 'health', r => stateElement(r.state), { text: r => r.state, number: false }),
      column('use', 'planned load', r => bar(r.use), { text: r => share(r.use), number: false }),
      column('share', 'share', r => share(r.share)), column('running', 'running', r => number(r.running)), column('waiting', 'waiting', r => number(r.waiting)),
      column('kv', 'KV', r => share(r.kv)), column('latency', 'latency', r => time(r.latency)), column('ttft', 'first byte', r => time(r.ttft)),
      column('tpot', 'per token', r => time(r.tpot)), column('served', 'served/s', r => number(r.served, 1)), column('failed', 'failed/s', r => number(r.failed, 1)),
      column('slowness', 'slowness', r => number(r.slowness, 2)), column('age', 'signal age', r => time(r.age)),
    ], { onSort: key => this.#order(key), rowClass: r => r.e === this.chosen ? 'chosen' : '', empty: 'no engine' });
    this.table.sorted(this.sort, this.reverse);
    $('engine-filter').addEventListener('input', () => { this.page = 0; this.draw(); });
    $('engine-pages').append(
      element('button', { type: 'button', onclick: () => this.#turn(-1) }, 'Previous'), ' ', this.places = element('span', {}), ' ',
      element('button', { type: 'button', onclick: () => this.#turn(1) }, 'Next'));
    this.loads = new Table($('load'), 'By cluster: engine time that is planned, and that may be planned', [
      { key: 'cluster', title: 'cluster', cell: r => r.cluster }, { key: 'engines', title: 'engines', number: true, cell: r => String(r.engines) },
      { key: 'ready', title: 'ready', number: true, cell: r => String(r.ready) }, { key: 'load', title: 'planned', number: true, cell: r => number(r.load, 2) },
      { key: 'capacity', title: 'capacity', number: true, cell: r => number(r.capacity, 2) }, { key: 'use', title: 'use', text: r => share(r.use), cell: r => bar(r.use) },
      { key: 'running', title: 'running', number: true, cell: r => number(r.running) }, { key: 'waiting', title: 'waiting', number: true, cell: r => number(r.waiting) },
    ]);
  }

  start(fleet) { this.fleet = fleet; this.page = 0; }

  #order(key) {
    this.reverse = this.sort === key ? !this.reverse : false;
    this.sort = key;
    this.page = 0;
    this.table.sorted(key, this.reverse);
    this.draw();
  }

  #turn(by) {
    this.page = Math.max(0, Math.min(this.pages - 1, this.page + by));
    this.draw();
  }

  row(e) {
    const now = this.state.engines, engine = this.fleet.engines[e];
    const out = { e, name: engine.name, models: engine.models, cluster: this.fleet.clusters[engine.cluster], state: this.fleet.states[now.state[e]] ?? 'unknown',
                  use: now.capacity[e] > 0 ? now.load[e] / now.capacity[e] : null, binding: this.fleet.bindings[now.binding[e]] };
    for (const key of ['share', 'running', 'waiting', 'kv', 'latency', 'ttft', 'tpot', 'served', 'failed', 'slowness', 'age', 'price', 'load', 'capacity', 'inflight', 'since'])
      out[key] = now[key][e];
    return out;
  }

  update(state) {
    this.state = state;
    if ($('engines').offsetParent) this.draw();
  }

  draw() {
    if (!this.state) return;
    const wanted = $('engine-filter').value.trim();
    let rows = this.fleet.engines.map((_, e) => this.row(e));
    this.#drawLoads(rows);
    if (wanted) rows = rows.filter(r => [r.name, r.cluster, r.models, r.state].some(text => text.includes(wanted)));
    const value = this.sort === 'state' ? r => badness[r.state] : r => r[this.sort];
    rows.sort((a, b) => {
      const x = value(a), y = value(b);
      const order = typeof x === 'string' ? x.localeCompare(y) : (y ?? -Infinity) - (x ?? -Infinity);
      return (this.reverse ? -order : order) || a.e - b.e;
    });
    this.pages = Math.max(1, Math.ceil(rows.length / page_rows));
    this.page = Math.min(this.page, this.pages - 1);
    const told = `${rows.length} of ${this.fleet.engines.length} engines`;
    if ($('engine-count').textContent !== told) $('engine-count').textContent = told;
    this.places.textContent = `page ${this.page + 1} of ${this.pages}`;
    $('engine-pages').hidden = this.pages === 1;
    this.table.update(rows.slice(this.page * page_rows, (this.page + 1) * page_rows));
    if (this.chosen >= 0) this.#drawDetail();
  }

  #drawLoads(rows) {
    const sums = this.fleet.clusters.map(cluster => ({ cluster, engines: 0, ready: 0, load: 0, capacity: 0, running: 0, waiting: 0 }));
    for (const r of rows) {
      const sum = sums[this.fleet.engines[r.e].cluster];
      if (!sum) continue;
      ++sum.engines;
      sum.ready += r.state === 'ready' ? 1 : 0;
      for (const key of ['load', 'capacity', 'running', 'waiting']) sum[key] += r[key] ?? 0;
    }
    for (const sum of sums) sum.use = sum.capacity > 0 ? sum.load / sum.capacity : null;
    this.loads.update(sums.filter(sum => sum.engines > 0));
  }

  open(e) {
    this.chosen = e;
    $('engine-detail').hidden = false;
    this.detail = new Table($('engine-detail-body'), 'What is known of it', [{ key: 'fact', title: 'fact', cell: r => r[0] }, { key: 'value', title: 'value', wrap: true, cell: r => r[1] }]);
    this.draw();
    $('engine-detail-title').focus();
    fetch(`engine/${encodeURIComponent(this.fleet.engines[e].name)}`).then(answer => answer.json()).then(more => {
      if (this.chosen !== e) return;
      this.more = more;
      this.#drawDetail();
    });
  }

  #drawDetail() {
    const r = this.row(this.chosen);
    $('engine-detail-title').textContent = `Engine ${r.name}`;
    const facts = [['cluster', r.cluster], ['models', r.models], ['health', r.state], ['for', time(r.since)], ['planned load', `${number(r.load, 3)} of ${number(r.capacity, 3)} (${share(r.use)})`],
                   ['what binds', r.binding ?? '–'], ['price', number(r.price, 4)], ['share of the planned requests', share(r.share)], ['in flight from routers', number(r.inflight)]];
    if (this.more?.engine === r.name) {
      facts.push(['evidence', this.more.evidence || '–']);
      for (const w of this.more.weights) facts.push([`weight for ${w.class} from ${w.cluster}`, number(w.weight, 4)]);
      for (const l of this.more.lost) facts.push([`not used for ${l.class} from ${l.cluster}`, l.sentence]);
    }
    this.detail.update(facts);
  }
}
