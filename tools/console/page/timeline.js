// What happened: a band for each engine's health, and the events.
import { $, element, marks, Table, time } from './dom.js';

const most_bands = 40;

export class Timeline {
  constructor() {
    this.events = [];
    this.table = new Table($('event-table'), 'Newest first', [
      { key: 'at', title: 'when', number: true, cell: e => `${time(this.now - e.at_s)} ago`, text: e => time(this.now - e.at_s) },
      { key: 'kind', title: 'kind', cell: e => e.kind }, { key: 'subject', title: 'what', cell: e => e.subject },
      { key: 'from', title: 'from', cell: e => e.from || '–' }, { key: 'to', title: 'to', text: e => e.to, cell: e => element('span', { class: e.severity }, e.to) },
      { key: 'detail', title: 'detail', wrap: true, cell: e => e.detail },
    ]);
    for (const kind of ['health', 'leader', 'plan', 'alert', 'process', 'policy']) $('event-kind').append(element('option', { value: kind }, kind));
    $('event-kind').addEventListener('change', () => this.draw());
  }

  start(fleet, events) {
    this.fleet = fleet;
    this.events = [...events];
    this.last = events.at(-1)?.n ?? 0;
    this.dirty = true;
  }

  add(events) {
    events = events.filter(e => e.n > this.last);
    if (!events.length) return;
    this.last = events.at(-1).n;
    this.events.push(...events);
    if (this.events.length > 5000) this.events.splice(0, this.events.length - 5000);
    this.dirty = true;
  }

  update(now) {
    this.now = now;
    if ($('timeline').offsetParent && (this.dirty || now - this.drawn > 1)) this.draw();
  }

  draw() {
    this.dirty = false;
    this.drawn = this.now;
    const kind = $('event-kind').value;
    this.table.update(this.events.filter(e => !kind || e.kind === kind).slice(-200).reverse());
    this.#drawBands();
  }

  // The engines whose health changed most recently, or all where there are few.
  #drawBands() {
    const health = this.events.filter(e => e.kind === 'health');
    const changed = [...new Set(health.toReversed().filter(e => e.from).map(e => e.subject))];
    const names = this.fleet.engines.length <= most_bands ? this.fleet.engines.map(e => e.name) : changed.slice(0, most_bands);
    const end = this.now, begin = Math.max(Math.min(...health.map(e => e.at_s), end), end - 600);
    const span = Math.max(1e-3, end - begin);
    const host = element('div', { class: 'bands' });
    for (const name of names) {
      const mine = health.filter(e => e.subject === name);
      const band = element('div', { class: 'band', role: 'img', 'aria-label': mine.map(e => `${e.to} since ${time(end - e.at_s)}`).join(', ') || 'nothing known' });
      mine.forEach((e, i) => {
        const from = Math.max(begin, e.at_s), until = mine[i + 1]?.at_s ?? end;
        if (until <= begin) return;
        const part = element('i', { class: e.to, title: `${name}: ${e.to}, ${e.detail}` });
        part.style.left = `${100 * (from - begin) / span}%`;
        part.style.width = `${100 * (until - from) / span}%`;
        band.append(part);
      });
      const state = mine.at(-1)?.to ?? 'unknown';
      host.append(element('span', { class: state }, `${marks[state] ?? '·'} ${name}`), band);
    }
    const told = names.length ? `the last ${time(span)}` : 'no engine has changed';
    $('health-bands').replaceChildren(element('p', { class: 'legend' }, told), host);
  }
}
