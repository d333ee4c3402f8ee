// Lines over time, drawn by Chart.js. Each has a caption with its latest values, for those who cannot see the lines.
import { css, element, number, share, time } from './dom.js';

const texts = { time, share, rate: value => `${number(value, 1)}/s`, number: value => number(value, 2) };
const window_s = 600;
const most_lines = 10;
const steps = [5, 10, 20, 30, 60, 120];

export class LineChart {
  // lines: [{ label, colour }]; unit: a key of `texts`
  constructor(host, title, unit, lines, { stacked = false, most } = {}) {
    this.text = texts[unit];
    this.lines = lines;
    this.told = element('small');
    this.canvas = element('canvas', { role: 'img', 'aria-label': title });
    this.title = title;
    host.append(element('figure', {}, element('figcaption', {}, `${title} `, this.told), element('div', { class: 'plot' }, this.canvas)));
    this.points = lines.map(() => []);
    this.chart = new Chart(this.canvas, {
      type: 'line',
      data: { datasets: lines.map((line, i) => this.#dataset(line, i, stacked)) },
      options: {
        animation: false, parsing: false, normalized: true, maintainAspectRatio: false, events: ['mousemove', 'mouseout', 'click'],
        interaction: { mode: 'nearest', axis: 'x', intersect: false },
        scales: {
          x: { type: 'linear', afterBuildTicks: axis => this.#ticks(axis), ticks: { autoSkip: false, maxRotation: 0, callback: value => this.#ago(value) } },
          y: { beginAtZero: true, stacked, suggestedMax: most, ticks: { maxTicksLimit: 5, callback: value => this.text(value) } },
        },
        plugins: {
          legend: { display: lines.length > 1, labels: { boxWidth: 12, boxHeight: 2 } },
          tooltip: { callbacks: { title: items => this.#ago(items[0].parsed.x), label: item => `${item.dataset.label}: ${this.text(item.parsed.y)}` } },
        },
      },
    });
    this.colours();
  }

  #ago(value) {
    const ago = Math.round((this.now ?? value) - value);
    return ago < 1 ? 'now' : ago < 120 ? `-${ago} s` : `-${number(ago / 60, ago % 60 ? 1 : 0)} min`;
  }

  // Round times before now, as many as fit.
  #ticks(axis) {
    const step = steps.find(candidate => (axis.max - axis.min) / candidate <= 6) ?? steps.at(-1);
    axis.ticks = [];
    for (let ago = 0; axis.max - ago >= axis.min; ago += step) axis.ticks.unshift({ value: axis.max - ago });
  }

  #dataset(line, i, stacked) {
    return { label: line.label, data: this.points[i], borderWidth: 1.8, pointRadius: 0, tension: 0, fill: stacked,
             borderDash: i < 8 ? [] : [6, 3], colour: line.colour ?? `--c${i % 8}` };
  }

  colours() {
    const ink = css('--dim'), grid = css('--line');
    for (const set of this.chart.data.datasets) {
      set.borderColor = css(set.colour);
      set.backgroundColor = css(set.colour) + '38';
    }
    for (const axis of Object.values(this.chart.options.scales)) {
      axis.ticks.color = ink;
      axis.grid = { color: grid };
    }
    this.chart.options.plugins.legend.labels.color = css('--text');
    this.dirty = true;
  }

  add(now, values) {
    this.now = now;
    this.dirty = true;
    values.forEach((value, i) => {
      const points = this.points[i];
      if (points) points.push({ x: now, y: value ?? NaN });
      while (points?.length && points[0].x < now - window_s) points.shift();
    });
    this.latest = values;
  }

  clear() {
    for (const points of this.points) points.length = 0;
    this.dirty = true;
  }

  draw() {
    if (!this.dirty || !this.canvas.offsetParent) return;
    this.dirty = false;
    const axis = this.chart.options.scales.x;
    axis.max = this.now;
    axis.min = Math.max(this.now - window_s, Math.min(...this.points.map(points => points[0]?.x ?? this.now)));
    this.chart.update('none');
    const told = this.lines.slice(0, 4).map((line, i) => `${this.lines.length > 1 ? `${line.label} ` : ''}${this.text(this.latest?.[i])}`).join(', ');
    if (this.told.textContent !== told) {
      this.told.textContent = told;
      this.canvas.setAttribute('aria-label', `${this.title}: now ${told}`);
    }
  }

  destroy() {
    this.chart.destroy();
    this.canvas.closest('figure').remove();
  }
}

// All charts of the page, fed by the samples of the server.
export class Charts {
  constructor(overview, plan) {
    this.overview = overview;
    this.plan = plan;
    this.all = [];
  }

  start(history) {
    for (const chart of this.all) chart.destroy();
    const line = label => ({ label });
    // The largest shares; the others are in the tables.
    const last = history.samples.at(-1)?.shares ?? [];
    this.shown = history.labels.map((_, i) => i).sort((a, b) => (last[b] ?? 0) - (last[a] ?? 0) || a - b).slice(0, most_lines).sort((a, b) => a - b);
    this.demand = new LineChart(this.overview, 'Demand', 'rate', [line('offered'), { label: 'shed', colour: '--gone' }]);
    this.latency = new LineChart(this.overview, 'Latency', 'time', [line('end to end'), line('to the first byte')]);
    this.use = new LineChart(this.overview, 'Planned load over capacity', 'share', [line('fleet')], { most: 1 });
    this.weights = new LineChart(this.plan, history.by_cluster ? 'Planned shares by the engines’ cluster' : 'Planned shares of engines', 'share',
                                 this.shown.map(i => line(history.labels[i])));
    this.gap = new LineChart(this.plan, 'Gap between plan and bound', 'share', [line('gap')]);
    this.all = [this.demand, this.latency, this.use, this.weights, this.gap];
    for (const sample of history.samples) this.add(sample);
  }

  add(sample) {
    if (!this.demand) return;
    this.demand.add(sample.t, [sample.offered, sample.shed]);
    this.latency.add(sample.t, [sample.latency, sample.ttft]);
    this.use.add(sample.t, [sample.use]);
    this.weights.add(sample.t, this.shown.map(i => sample.shares[i] ?? 0));
    this.gap.add(sample.t, [sample.gap]);
  }

  draw() { for (const chart of this.all) chart.draw(); }
  colours() { for (const chart of this.all) chart.colours(); }
}
