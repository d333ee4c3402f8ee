// Decisions: the latest ones, one found by its id, and why it went where it went.
import { $, element, number, Table, time } from './dom.js';

const parts = [['network_s', 'network', '--c0'], ['queue_s', 'queue', '--c1'], ['prefill_s', 'prefill', '--c2'], ['decode_s', 'decode', '--c3'], ['price_s', 'delay to others', '--c4']];

export class Decisions {
  constructor() {
    this.recent = [];
    this.table = new Table($('recent-table'), 'Decisions that the routers published while somebody listens; newest first', [
      { key: 'decision', title: 'decision', text: d => d.decision, cell: d => element('button', { type: 'button', class: 'link', onclick: () => this.explain(d.decision) }, d.decision) },
      { key: 'class', title: 'class', cell: d => d.class_name || '–' }, { key: 'from', title: 'from', cell: d => d.cluster },
      { key: 'engine', title: 'engine', cell: d => d.engine || '–' }, { key: 'end', title: 'outcome', cell: d => d.outcome },
      { key: 'attempts', title: 'attempts', number: true, cell: d => number(d.attempts) }, { key: 'took', title: 'took', number: true, cell: d => time(d.took_s) },
    ], { empty: 'none heard yet' });
    $('decision-form').addEventListener('submit', event => {
      event.preventDefault();
      this.explain($('decision-id').value.trim());
    });
    for (const id of ['recent-engine', 'recent-class', 'recent-refused']) $(id).addEventListener('input', () => this.draw());
  }

  start(fleet, decisions) {
    this.fleet = fleet;
    this.recent = [], this.last = 0;
    this.add(decisions);
  }

  add(decisions) {
    decisions = decisions.filter(d => d.n > (this.last ?? 0));
    if (!decisions.length) return;
    this.last = decisions.at(-1).n;
    this.recent = [...decisions.toReversed(), ...this.recent].slice(0, 1000);
    this.dirty = true;
  }

  draw() {
    const engine = $('recent-engine').value, kind = $('recent-class').value, refused = $('recent-refused').checked;
    this.table.update(this.recent.filter(d => (d.engine ?? '').includes(engine) && (d.class_name ?? '').includes(kind) && (!refused || d.refused)).slice(0, 50));
    this.dirty = false;
  }

  update() { if (this.dirty && $('decisions').offsetParent) this.draw(); }

  async explain(id) {
    $('decision-error').textContent = '';
    if (!id) return;
    $('decision-id').value = id;
    const answer = await fetch(`explain/${encodeURIComponent(id)}`);
    const body = await answer.json();
    if (!answer.ok) {
      $('decision-error').textContent = body.error;
      $('explanation').hidden = true;
      return;
    }
    this.#show(body);
    this.#reasons(id);
  }

  /// The plan's reasons come after the decision's own: the router or the recording is asked for that plan.
  async #reasons(id) {
    const hidden = hide => { for (const part of ['explanation-plan', 'explanation-weights']) $(part).hidden = hide; };
    hidden(true);
    const answer = await fetch(`reasons/${encodeURIComponent(id)}`);
    if (!answer.ok || $('decision-id').value !== id) return;
    const { plan = [], weights = [], price = [], not_used = [] } = await answer.json();
    if (!plan.length) return;
    hidden(false);
    $('explanation-plan').textContent = `Weights by ${plan[0].shown}, ${plan[0].sentence}.`;
    const of = (rows, engine) => rows.find(row => row.engine === engine);
    const table = new Table($('explanation-weights'), 'Why the plan gave these weights', [
      { key: 'engine', title: 'engine', cell: row => row.engine }, { key: 'weight', title: 'weight', number: true, cell: row => number(of(weights, row.engine)?.weight ?? 0, 3) },
      { key: 'price', title: 'price', number: true, cell: row => number(row.price, 2) }, { key: 'load', title: 'planned load', number: true, cell: row => number(row.planned_load, 3) },
      { key: 'capacity', title: 'capacity', number: true, cell: row => number(row.capacity, 3) },
      { key: 'why', title: 'why', wrap: true, cell: row => of(not_used, row.engine)?.sentence ?? row.sentence },
    ]);
    table.update(price);
  }

  #show({ sentence, record }) {
    $('explanation').hidden = false;
    $('explanation-sentence').textContent = sentence;
    const names = this.fleet.engines.map(engine => engine.name);
    const name = row => names[row.engine] ?? `engine ${row.engine}`;
    const priced = row => ['chosen', 'dearer', 'kv_full'].includes(row.fate) || row.total_s > 0;
    const most = Math.max(1e-9, ...record.candidates.filter(priced).map(row => row.total_s));
    const costs = new Table($('explanation-costs'), 'Every engine, and what spoke for and against it', [
      { key: 'engine', title: 'engine', cell: name }, { key: 'fate', title: 'fate', cell: row => row.fate },
      { key: 'bar', title: 'cost', text: row => JSON.stringify(row), cell: row => priced(row) ? this.#bar(row, most) : '' },
      { key: 'total', title: 'total', number: true, cell: row => priced(row) ? time(row.total_s) : '–' },
      ...parts.map(([key, title, colour]) => ({ key, title, colour, number: true, cell: row => priced(row) ? time(row[key]) : '–' })),
      { key: 'weight', title: 'weight', number: true, cell: row => number(row.weight, 3) }, { key: 'penalty', title: 'penalty', number: true, cell: row => number(row.penalty, 2) },
      { key: 'there', title: 'in flight', number: true, cell: row => number(row.inflight, 1) }, { key: 'cached', title: 'cached tokens', number: true, cell: row => number(row.matched_tokens) },
      { key: 'age', title: 'signal age', number: true, cell: row => time(row.signal_age_s) },
    ], { rowClass: row => row.fate === 'chosen' ? 'chosen' : '' });
    costs.update(record.candidates);
    const attempts = new Table($('explanation-attempts'), 'Attempts', [
      { key: 'engine', title: 'engine', cell: name }, { key: 'end', title: 'end', cell: row => row.end }, { key: 'status', title: 'status', number: true, cell: row => String(row.status || '–') },
      { key: 'began', title: 'began', number: true, cell: row => time(row.began_s) }, { key: 'first', title: 'first byte', number: true, cell: row => row.first_byte_s ? time(row.first_byte_s) : '–' },
      { key: 'ended', title: 'ended', number: true, cell: row => row.ended_s ? time(row.ended_s) : '–' },
    ]);
    attempts.update(record.attempts);
    const facts = new Table($('explanation-facts'), 'As recorded', [{ key: 'k', title: 'fact', cell: ([k]) => k }, { key: 'v', title: 'value', wrap: true, cell: ([, v]) => typeof v === 'object' ? JSON.stringify(v) : String(v) }]);
    facts.update(Object.entries(record).filter(([key]) => !['candidates', 'attempts'].includes(key)));
    $('explanation-title').focus();
  }

  #bar(row, most) {
    const bar = element('span', { class: 'costs', role: 'img', 'aria-label': parts.map(([key, title]) => `${title} ${time(row[key])}`).join(', ') });
    for (const [key, title, colour] of parts) {
      const part = element('i', { title: `${title} ${time(row[key])}` });
      part.style.width = `${100 * row[key] / most}%`;
      part.style.background = `var(${colour})`;
      bar.append(part);
    }
    return bar;
  }
}
