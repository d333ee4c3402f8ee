// Where requests enter, where they are served, and how much flows between. Few engines are drawn each by itself; many
// as a grid of cells for each cluster, with the flows between clusters.
import { $, css, element, marks, number, share, svg, Table, time } from './dom.js';

const few = 60;
const width = 860;

// A curve from left to right whose width is its part of the greatest flow.
function flow(x1, y1, x2, y2, rate, greatest, title) {
  const middle = (x1 + x2) / 2;
  const path = svg('path', { class: 'flow', d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`,
                             'stroke-width': Math.max(1, 16 * rate / greatest).toFixed(2) });
  path.append(svg('title', {}));
  path.firstChild.textContent = title;
  return path;
}

export class Topology {
  constructor(host, open) {
    this.host = host;
    this.open = open;  // called with an engine's row
    this.table = new Table($('flows-table'), 'Planned requests a second, from where they enter to where they are served',
      [{ key: 'from', title: 'from', cell: f => f.from }, { key: 'to', title: 'to', cell: f => f.to },
       { key: 'rate', title: 'requests/s', number: true, cell: f => number(f.rate, 2) }]);
    $('topology-legend').append(...Object.entries(marks).filter(([state]) => state !== 'unknown').map(([state, mark]) =>
      element('span', { class: state }, `${mark} ${state}`)), element('span', {}, 'width of a curve: planned requests'));
  }

  start(fleet) {
    this.fleet = fleet;
    this.large = fleet.engines.length > few;
    this.host.replaceChildren();
    this.grids = [];
    this.layout = '';
    this.svg = svg('svg', { role: 'group', 'aria-label': 'Flows from clusters to engines' });
    this.host.append(this.svg);
    if (this.large) this.#makeGrids();
  }

  update(state) {
    const flows = this.large ? state.cluster_flows : state.flows;
    const name = this.large ? to => this.fleet.clusters[to] : to => this.fleet.engines[to].name;
    const seen = flows.filter(([, , rate]) => rate > 1e-6).map(([from, to, rate]) => ({ a: from, b: to, from: this.fleet.clusters[from], to: name(to), rate }));
    this.table.update(seen.sort((x, y) => y.rate - x.rate).slice(0, 200));
    if (!this.host.offsetParent) return;
    this.large ? this.#drawClusters(state, seen) : this.#drawEngines(state, seen);
    for (const grid of this.grids) grid.draw(state);
  }

  #sources(height) {
    const step = height / this.fleet.clusters.length;
    return this.fleet.clusters.map((_, i) => step * (i + 0.5));
  }

  #drawFlows(seen, sources, targets) {
    const greatest = Math.max(1e-9, ...seen.map(f => f.rate));
    const group = svg('g', {});
    for (const f of seen) group.append(flow(130, sources[f.a], 560, targets[f.b], f.rate, greatest, `${f.from} to ${f.to}: ${number(f.rate, 2)} requests/s`));
    this.flows?.remove();
    this.flows = group;
    this.svg.prepend(group);
  }

  #clusterNode(x, y, name, detail) {
    const group = svg('g', { class: 'info' });
    group.append(svg('rect', { class: 'node', x, y: y - 18, width: 120, height: 36, rx: 6 }));
    const title = svg('text', { x: x + 10, y: y - 2 });
    title.textContent = name;
    const small = svg('text', { class: 'dim', x: x + 10, y: y + 13 });
    small.textContent = detail;
    group.append(title, small);
    return { group, small };
  }

  #offered(state, cluster) {
    return state.demand.filter(row => row.cluster === cluster).reduce((sum, row) => sum + row.offered_rps, 0);
  }

  #drawEngines(state, seen) {
    const rows = this.fleet.engines.length;
    const height = Math.max(120, rows * 42 + this.fleet.clusters.length * 20);
    if (this.layout !== `engines ${rows}`) {
      this.layout = `engines ${rows}`;
      this.svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
      this.svg.replaceChildren();
      this.sources = this.#sources(height);
      this.entry = this.fleet.clusters.map((name, i) => {
        const node = this.#clusterNode(8, this.sources[i], name, '');
        this.svg.append(node.group);
        return node;
      });
      this.places = [];
      let y = 8;
      this.fleet.clusters.forEach((cluster, c) => {
        const title = svg('text', { class: 'dim', x: 560, y: y + 10 });
        title.textContent = `engines in ${cluster}`;
        this.svg.append(title);
        y += 18;
        this.fleet.engines.forEach((engine, e) => {
          if (engine.cluster !== c) return;
          this.places[e] = y + 18;
          y += 42;
        });
      });
      this.nodes = this.fleet.engines.map((engine, e) => this.#engineNode(e, this.places[e]));
    }
    this.entry.forEach((node, i) => { node.small.textContent = `${number(this.#offered(state, this.fleet.clusters[i]), 1)} requests/s`; });
    this.#drawFlows(seen, this.sources, this.places);
    this.nodes.forEach((node, e) => this.#updateNode(node, state, e));
  }

  #engineNode(e, y) {
    const engine = this.fleet.engines[e];
    const group = svg('g', { tabindex: 0, role: 'button' });
    const fill = svg('rect', { class: 'fill', x: 560, y: y - 17, height: 34, width: 0, rx: 6 });
    const box = svg('rect', { class: 'node', x: 560, y: y - 17, width: 290, height: 34, rx: 6, 'fill-opacity': 0 });
    const title = svg('text', { x: 572, y: y - 2 });
    const small = svg('text', { class: 'dim', x: 572, y: y + 12 });
    group.append(svg('rect', { x: 560, y: y - 17, width: 290, height: 34, rx: 6, fill: 'var(--panel)' }), fill, box, title, small);
    const open = () => this.open(e);
    group.addEventListener('click', open);
    group.addEventListener('keydown', event => { if (event.key === 'Enter') open(); });
    this.svg.append(group);
    return { group, fill, title, small, engine };
  }

  #updateNode(node, state, e) {
    const at = state.engines;
    const health = this.fleet.states[at.state[e]] ?? 'unknown';
    const use = at.capacity[e] > 0 ? at.load[e] / at.capacity[e] : null;
    const said = `${marks[health] ?? '·'} ${node.engine.name}  ${health}`;
    const more = `load ${share(use)}  share ${share(at.share[e])}  ${time(at.latency[e])}`;
    if (node.said !== said + more) {
      node.said = said + more;
      node.group.setAttribute('class', health);
      node.title.textContent = said;
      node.small.textContent = more;
      node.group.setAttribute('aria-label', `${said}, ${more}`);
      node.fill.setAttribute('width', (290 * Math.min(1, use ?? 0)).toFixed(1));
    }
  }

  #drawClusters(state, seen) {
    const clusters = this.fleet.clusters.length;
    const height = Math.max(120, clusters * 48);
    if (this.layout !== `clusters ${clusters}`) {
      this.layout = `clusters ${clusters}`;
      this.svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
      this.svg.replaceChildren();
      this.sources = this.#sources(height);
      this.entry = this.fleet.clusters.map((name, i) => this.#clusterNode(8, this.sources[i], name, ''));
      this.exit = this.fleet.clusters.map((name, i) => this.#clusterNode(560, this.sources[i], name, ''));
      for (const node of [...this.entry, ...this.exit]) this.svg.append(node.group);
    }
    this.entry.forEach((node, i) => { node.small.textContent = `${number(this.#offered(state, this.fleet.clusters[i]), 0)} requests/s`; });
    const ready = new Array(clusters).fill(0), all = new Array(clusters).fill(0);
    this.fleet.engines.forEach((engine, e) => {
      ++all[engine.cluster];
      if (this.fleet.states[state.engines.state[e]] === 'ready') ++ready[engine.cluster];
    });
    this.exit.forEach((node, i) => { node.small.textContent = `${ready[i]} of ${all[i]} ready`; });
    this.#drawFlows(seen.slice(0, 150), this.sources, this.sources);
  }

  #makeGrids() {
    this.tip = element('p', { id: 'grid-tip', role: 'status' }, 'point at a cell, or move with the arrow keys');
    this.fleet.clusters.forEach((cluster, c) => {
      const rows = this.fleet.engines.map((engine, e) => e).filter(e => this.fleet.engines[e].cluster === c);
      if (!rows.length) return;
      const canvas = element('canvas', { class: 'grid', tabindex: 0, role: 'application', 'aria-label': `${rows.length} engines of ${cluster}; arrow keys move, Enter opens` });
      this.host.append(element('h3', { class: 'grid-title' }, `${cluster}: ${rows.length} engines`), canvas);
      this.grids.push(new Grid(canvas, rows, this));
    });
    this.host.append(this.tip);
  }
}

// A cell for each engine: its colour and mark say its state, its filling its load.
class Grid {
  constructor(canvas, rows, topology) {
    this.canvas = canvas;
    this.rows = rows;
    this.topology = topology;
    this.chosen = 0;
    canvas.addEventListener('mousemove', event => this.#choose(this.#at(event)));
    canvas.addEventListener('click', event => { const at = this.#at(event); if (at >= 0) topology.open(rows[at]); });
    canvas.addEventListener('keydown', event => this.#key(event));
  }

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    const at = Math.floor((event.clientY - box.top) / this.cell) * this.across + Math.floor((event.clientX - box.left) / this.cell);
    return at < this.rows.length ? at : -1;
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across }[event.key];
    if (event.key === 'Enter') this.topology.open(this.rows[this.chosen]);
    if (!step) return;
    event.preventDefault();
    this.#choose(Math.max(0, Math.min(this.rows.length - 1, this.chosen + step)));
    this.draw(this.state);
  }

  #choose(at) {
    if (at < 0 || !this.state) return;
    this.chosen = at;
    const e = this.rows[at], now = this.state.engines, fleet = this.topology.fleet;
    const use = now.capacity[e] > 0 ? now.load[e] / now.capacity[e] : null;
    this.topology.tip.textContent = `${fleet.engines[e].name}: ${fleet.states[now.state[e]] ?? 'unknown'}, load ${share(use)}, ` +
      `${number(now.running[e])} running, ${number(now.waiting[e])} waiting, ${time(now.latency[e])}`;
  }

  draw(state) {
    this.state = state;
    const scale = devicePixelRatio || 1;
    const wide = this.canvas.clientWidth;
    this.cell = this.rows.length > 600 ? 13 : 18;
    this.across = Math.max(1, Math.floor(wide / this.cell));
    const down = Math.ceil(this.rows.length / this.across);
    const high = down * this.cell;
    if (this.canvas.width !== Math.round(wide * scale) || this.canvas.height !== Math.round(high * scale)) {
      this.canvas.width = Math.round(wide * scale);
      this.canvas.height = Math.round(high * scale);
      this.canvas.style.height = `${high}px`;
    }
    const paint = this.canvas.getContext('2d');
    const states = this.topology.fleet.states;
    const colours = Object.fromEntries([...states, 'unknown'].map(s => [s, css(`--${s}`)]));
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, wide, high);
    const size = this.cell - 2;
    this.rows.forEach((e, i) => {
      const x = (i % this.across) * this.cell, y = Math.floor(i / this.across) * this.cell;
      const health = states[state.engines.state[e]] ?? 'unknown';
      const use = state.engines.capacity[e] > 0 ? Math.min(1, state.engines.load[e] / state.engines.capacity[e]) : 0;
      paint.fillStyle = colours[health];
      paint.globalAlpha = 0.3;
      paint.fillRect(x, y, size, size);
      paint.globalAlpha = 1;
      paint.fillRect(x, y + size * (1 - use), size, size * use);
      if (health !== 'ready') {  // a mark that needs no colour
        paint.strokeStyle = colours[health];
        paint.lineWidth = 1.5;
        paint.strokeRect(x + 0.75, y + 0.75, size - 1.5, size - 1.5);
        if (health === 'gone' || health === 'suspect') {
          paint.beginPath();
          paint.moveTo(x, y), paint.lineTo(x + size, y + size);
          if (health === 'gone') paint.moveTo(x + size, y), paint.lineTo(x, y + size);
          paint.stroke();
        }
      }
      if (i === this.chosen && document.activeElement === this.canvas) {
        paint.strokeStyle = css('--focus');
        paint.lineWidth = 2;
        paint.strokeRect(x, y, size, size);
      }
    });
  }
}
