// Small helpers: elements, numbers as text, tables that are updated in place.

export const $ = id => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'class') node.className = value;
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter(child => child != null));
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const known = value => value !== null && value !== undefined && Number.isFinite(value);
export const number = (value, digits = 0) => known(value) ? value.toFixed(digits) : '–';
export const share = value => known(value) ? `${(value * 100).toFixed(value < 0.0995 && value > 0 ? 1 : 0)} %` : '–';
export function time(seconds) {
  if (!known(seconds)) return '–';
  if (seconds < 0.0995) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 0.9995) return `${(seconds * 1e3).toFixed(0)} ms`;
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  return seconds < 6000 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

// A mark for each state, so that it is told without colour.
export const marks = { ready: '●', degraded: '◐', suspect: '?', gone: '✕', draining: '▽', starting: '△', unknown: '·' };
export const stateElement = state => element('span', { class: `state ${state}`, 'data-mark': marks[state] ?? '·' }, state);

export function bar(value) {
  const level = value > 0.97 ? 'full' : value > 0.85 ? 'high' : '';
  const fill = element('i', { class: level });
  fill.style.width = `${Math.max(0, Math.min(1, value ?? 0)) * 100}%`;
  return element('span', {}, element('span', { class: 'bar', 'aria-hidden': true }, fill), ' ', share(value));
}

// A table that keeps its rows and writes only cells whose content changed, so that focus and selection stay.
//   columns: { key, title, number, sort, cell(row) -> string | Node, text(row) }
export class Table {
  constructor(host, caption, columns, { onSort, rowClass, empty = 'none' } = {}) {
    this.columns = columns;
    this.rowClass = rowClass;
    this.body = element('tbody');
    this.empty = empty;
    this.heads = columns.map(column => {
      const label = column.sort && onSort
        ? element('button', { type: 'button', onclick: () => onSort(column.key) }, column.title) : column.title;
      const chip = column.colour ? element('i', { class: 'chip' }) : null;
      if (chip) chip.style.background = `var(${column.colour})`;
      return element('th', { scope: 'col', class: column.number ? 'number' : '' }, chip, label);
    });
    this.caption = element('caption', {}, caption);
    this.host = host;
    new ResizeObserver(() => { host.tabIndex = host.scrollWidth > host.clientWidth + 1 ? 0 : -1; }).observe(host);
    host.setAttribute('role', 'region');
    host.setAttribute('aria-label', caption);
    host.replaceChildren(element('table', {}, this.caption, element('thead', {}, element('tr', {}, ...this.heads)), this.body));
  }

  sorted(key, reverse) {
    this.columns.forEach((column, i) => {
      if (column.key === key) this.heads[i].setAttribute('aria-sort', reverse ? 'ascending' : 'descending');
      else this.heads[i].removeAttribute('aria-sort');
    });
  }

  update(rows) {
    const wanted = Math.max(rows.length, 1);
    while (this.body.rows.length > wanted) this.body.deleteRow(-1);
    while (this.body.rows.length < wanted) {
      const row = this.body.insertRow();
      for (const column of this.columns) row.append(element('td', { class: `${column.number ? 'number' : ''} ${column.wrap ? 'wrap' : ''}`.trim() }));
    }
    if (!rows.length) {
      [...this.body.rows[0].cells].forEach((cell, i) => this.#write(cell, i === 0 ? this.empty : '', i === 0 ? this.empty : ''));
      this.body.rows[0].className = '';
      return;
    }
    rows.forEach((data, r) => {
      const row = this.body.rows[r];
      const kind = this.rowClass?.(data) ?? '';
      if (row.className !== kind) row.className = kind;
      this.columns.forEach((column, c) => {
        const text = column.text ? column.text(data) : column.cell(data);
        this.#write(row.cells[c], text, () => column.cell(data));
      });
    });
  }

  #write(cell, text, make) {
    if (cell.shown === text) return;
    cell.shown = text;
    const content = typeof make === 'function' ? make() : make;
    cell.replaceChildren(content);
  }
}

export const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
