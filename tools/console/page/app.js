// The page: connects to the server's events, and gives each view what it shows. Nothing here changes the fleet.
import { $, element, number, share, Table, time } from './dom.js';
import { Charts } from './charts.js';
import { Decisions } from './decisions.js';
import { Engines } from './engines.js';
import { Timeline } from './timeline.js';
import { Topology } from './topology.js';

const views = ['overview', 'engines', 'plan', 'timeline', 'decisions'];
const durations = [];  // of updates, in ms; for those who measure
window.signalbox = { durations };

const engines = new Engines();
const topology = new Topology($('topology'), e => { show('engines'); engines.open(e); });
const charts = new Charts($('overview-charts'), $('plan-charts'));
const timeline = new Timeline();
const decisions = new Decisions();

const demand = new Table($('demand-table'), 'Requests a second, by where they enter', [
  { key: 'cluster', title: 'cluster', cell: r => r.cluster }, { key: 'class', title: 'class', cell: r => r.class },
  { key: 'offered', title: 'offered/s', number: true, cell: r => number(r.offered_rps, 1) }, { key: 'shed', title: 'shed/s', number: true, cell: r => number(r.shed_rps, 1) },
  { key: 'planned', title: 'planned/s', number: true, cell: r => number(r.planned_rps, 1) }, { key: 'admit', title: 'admitted', number: true, cell: r => share(r.admit) },
]);
const snapshots = new Table($('snapshot-table'), 'No plan can cost less than the bound; the gap is what a better plan could still save', [
  { key: 'cluster', title: 'cluster', cell: r => r.cluster }, { key: 'version', title: 'version', cell: r => r.version ?? '–' }, { key: 'kind', title: 'kind', cell: r => r.kind },
  { key: 'age', title: 'age', number: true, cell: r => time(r.age_s) }, { key: 'from', title: 'by', cell: r => r.from }, { key: 'objective', title: 'cost', number: true, cell: r => number(r.objective, 4) },
  { key: 'bound', title: 'bound', number: true, cell: r => number(r.lower_bound, 4) }, { key: 'gap', title: 'gap', number: true, cell: r => `${number(r.gap * 100, 3)} %` },
  { key: 'policy', title: 'policy', cell: r => r.policy }, { key: 'cause', title: 'cause', wrap: true, cell: r => r.cause || '–' },
]);
const optimizers = new Table($('optimizer-table'), 'Who plans', [
  { key: 'optimizer', title: 'optimizer', cell: r => r.optimizer }, { key: 'leads', title: 'leads', cell: r => r.leads ? 'leads' : 'stands by' }, { key: 'term', title: 'term', number: true, cell: r => number(r.term) },
  { key: 'snapshot', title: 'snapshot', cell: r => r.snapshot ?? '–' }, { key: 'beat', title: 'beat age', number: true, cell: r => time(r.beat_age_s) }, { key: 'state', title: 'state', wrap: true, cell: r => r.state },
]);
const routers = new Table($('router-table'), 'Who serves clients', [
  { key: 'router', title: 'router', cell: r => r.router }, { key: 'ready', title: 'ready', cell: r => r.ready ? 'ready' : 'not ready' }, { key: 'snapshot', title: 'snapshot', cell: r => r.snapshot ?? '–' },
  { key: 'receipt', title: 'receipt', cell: r => r.last_receipt ?? '–' }, { key: 'offered', title: 'offered/s', number: true, cell: r => number(r.offered_rps, 1) }, { key: 'inflight', title: 'in flight', number: true, cell: r => number(r.inflight) },
  { key: 'state', title: 'state', wrap: true, cell: r => r.state },
]);

function show(view) {
  for (const name of views) {
    $(name).hidden = name !== view;
    $(`tab-${name}`).setAttribute('aria-selected', name === view);
    $(`tab-${name}`).tabIndex = name === view ? 0 : -1;
  }
  if (location.hash !== `#${view}`) history.replaceState(null, '', `#${view}`);
  if (latest) render(latest);
}

let latest = null, fleet = null, loading = false;

function summary(state) {
  const s = state.summary;
  const items = [
    ['engines', `${s.serving} of ${s.engines} serve`, s.gone > 0], ['leader', s.leader ? `${s.leader}, term ${s.term}` : 'none', !s.leader], ['plan', `${time(s.plan_age_s)} old`, s.plan_age_s > 5],
    ['demand', `${number(s.offered_rps, 1)}/s`], ['shed', `${number(s.shed_rps, 1)}/s`, s.shed_rps > 0], ['in flight', number(s.inflight)],
    ['latency', time(s.latency_s)], ['first byte', time(s.first_byte_s)], ['alerts', String(state.alerts.length), state.alerts.length > 0],
  ];
  const list = $('summary-list');
  items.forEach(([name, value, bad], i) => {
    let item = list.children[i];
    if (!item) list.append(item = element('div', {}, element('dt', {}, name), element('dd')));
    if (item.lastChild.textContent !== value) item.lastChild.textContent = value;
    item.classList.toggle('bad', Boolean(bad));
  });
}

function alerts(list) {
  const text = JSON.stringify(list.map(a => [a.alert, a.severity, a.summary]));
  if ($('alerts').shown === text) return;
  $('alerts').shown = text;
  $('alerts').replaceChildren(...(list.length ? list.map(a => element('p', {}, element('span', { class: a.severity }, `${a.severity}: ${a.alert}`), ` ${a.summary}`, element('br'), element('code', {}, a.look_closer ?? ''))) : [element('p', { class: 'legend' }, 'none')]));
}

function render(state) {
  const began = performance.now();
  summary(state);
  if (state.replay) {
    $('replay').hidden = false;
    const at = $('replay-at');
    at.max = state.replay.length_s;
    if (document.activeElement !== at) at.value = state.replay.at_s;
    $('replay-text').textContent = `${number(state.replay.at_s, 1)} s of ${number(state.replay.length_s, 1)} s`;
    $('replay-hold').textContent = state.replay.held ? 'Go on' : 'Stop';
  }
  topology.update(state);
  engines.update(state);
  timeline.update(state.now_s);
  decisions.update();
  if ($('overview').offsetParent) { demand.update(state.demand); alerts(state.alerts); }
  if ($('plan').offsetParent) { snapshots.update(state.snapshots); optimizers.update(state.optimizers); routers.update(state.routers); }
  charts.draw();
  durations.push(performance.now() - began);
  if (durations.length > 2000) durations.splice(0, 1000);
}

async function load() {
  loading = true;
  const [one, history] = await Promise.all(['fleet', 'history'].map(path => fetch(path).then(answer => answer.json())));
  fleet = one;
  $('fleet-name').textContent = `${fleet.fleet}${fleet.recording ? ' (recording)' : ''}`;
  document.title = `Signalbox: ${fleet.fleet}`;
  topology.start(fleet), engines.start(fleet), decisions.start(fleet, history.decisions), timeline.start(fleet, history.events), charts.start(history);
  loading = false;
}

async function receive(state) {
  if (loading) return;
  if (!fleet || fleet.version !== state.version) await load();
  if (fleet.version !== state.version) return;
  latest = state;
  if (state.sample) charts.add(state.sample);
  timeline.add(state.events), decisions.add(state.decisions);
  render(state);
}

function connect() {
  const source = new EventSource('events');
  const told = $('connection');
  source.onopen = () => { told.textContent = 'live'; told.className = ''; fleet = null; };
  source.onmessage = message => receive(JSON.parse(message.data));
  source.onerror = () => { told.textContent = 'the console does not answer; trying again'; told.className = 'lost'; };
}

function theme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  document.documentElement.style.colorScheme = dark ? 'dark' : 'light';
  $('theme').setAttribute('aria-pressed', dark);
  charts.colours();
  if (latest) render(latest);
}

const command = body => fetch('replay', { method: 'POST', body: JSON.stringify(body) });
const held = () => latest?.replay?.held ?? false;

for (const name of views) $(`tab-${name}`).addEventListener('click', () => show(name));
$('tabs').addEventListener('keydown', event => {
  const at = views.indexOf(location.hash.slice(1) || 'overview');
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: views.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  const view = views[(next + views.length) % views.length];
  show(view);
  $(`tab-${view}`).focus();
});
$('theme').addEventListener('click', () => theme(document.documentElement.dataset.theme !== 'dark'));
$('replay-hold').addEventListener('click', () => command({ held: !held() }));
$('replay-at').addEventListener('change', event => { fleet = null; command({ at_s: Number(event.target.value) }); });
$('replay').addEventListener('submit', event => event.preventDefault());
document.addEventListener('keydown', event => {
  if (event.target.matches('input, select, textarea') || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key >= '1' && event.key <= '5') show(views[event.key - 1]);
  else if (event.key === 'd') theme(document.documentElement.dataset.theme !== 'dark');
  else if (event.key === '?') $('keys').showModal();
  else if (event.key === '/') {
    event.preventDefault();
    if (!$('decisions').hidden) $('decision-id').focus();
    else { show('engines'); $('engine-filter').focus(); }
  } else if (event.key === ' ' && latest?.replay && !event.target.matches('button, summary')) {
    event.preventDefault();
    command({ held: !held() });
  }
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', event => theme(event.matches));
theme(matchMedia('(prefers-color-scheme: dark)').matches);
show(views.includes(location.hash.slice(1)) ? location.hash.slice(1) : 'overview');
connect();
