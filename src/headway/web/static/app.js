// Pages, their state in the address, colours, and what holds them together.
import { declared, cancel } from './ask.js';
import { Blackboard } from './board.js';
import { redraws } from './chart.js';
import { widened } from './colours.js';
import { lists } from './controls.js';
import { el, replace } from './dom.js';
import { Start } from './start.js';
import { close } from './tree.js';
import { View } from './view.js';
import { opening } from './wait.js';

const main = document.getElementById('main');
const OWN = new Set(['v', 'view', 'w']);
let pages = [];
let names = {};
let shown = null; // what stands on the page: its place, and how it takes a state
const verbs = new Map();

const verbOf = async (name) => {
  if (!verbs.has(name)) verbs.set(name, await declared(`/api/verb/${name}`));
  return verbs.get(name);
};

function stateOf(search, view) {
  const query = new URLSearchParams(search);
  if (![...query.keys()].some((key) => key !== 'v' && key !== 'view')) return { words: view.words ?? [], flags: view.flags ?? {} };
  const flags = {};
  for (const key of new Set(query.keys())) {
    if (OWN.has(key)) continue;
    const values = query.getAll(key);
    flags[key] = values.length > 1 ? values : values[0];
  }
  return { words: query.getAll('w'), flags };
}

function addressOf(view, { words, flags }) {
  const query = new URLSearchParams([['v', '1'], ['view', view.name], ...words.map((word) => ['w', word])]);
  for (const [name, value] of Object.entries(flags)) for (const item of [value].flat()) query.append(name, item === true ? 'on' : item);
  return `${location.pathname}?${query}${location.hash}`;
}

// Views of dropped files take along what they ask alike.
function tabs(page, view, state) {
  const shared = (entry) => Object.entries(view.upload && entry.upload ? state.flags : {}).filter(([name]) => entry.front.includes(name)).flatMap(([name, value]) => [value].flat().map((item) => [name, item]));
  const query = (entry) => new URLSearchParams([['view', entry.name], ...shared(entry)]);
  return page.views.length > 1
    ? el('nav', { class: 'tabs', 'aria-label': 'Views' }, page.views.map((entry) => link(`/${page.name}?${query(entry)}`, entry.title, entry === view)))
    : null;
}

function headings(page, view, state) {
  return [el('header', { class: 'lede' }, el('h1', {}, page.title), el('p', {}, page.says)), view && tabs(page, view, state)];
}

function link(href, text, current) {
  return el('a', { href: `${href}${location.hash}`, 'aria-current': current ? 'page' : null }, text);
}

async function show() {
  cancel();
  close();
  const name = location.pathname.slice(1) || pages[0].name;
  const page = pages.find((entry) => entry.name === name) ?? pages[0];
  const wanted = new URLSearchParams(location.search).get('view');
  const view = page.views.find((entry) => entry.name === wanted) ?? page.views[0];
  document.title = `${view && page.views.length > 1 ? `${view.title} · ` : ''}${page.title} · headway`;
  replace(document.getElementById('pages'), pages.map((entry) => link(`/${entry.name}`, entry.questions.length ? 'Start' : entry.title, entry === page)));
  if (page.questions.length) {
    shown = new Start(page.questions, (address) => { history.pushState(null, '', address + location.hash); show(); window.scrollTo(0, 0); });
    replace(main, headings(page, null), shown.node);
  } else if (!view) {
    if (!(shown instanceof Blackboard)) {
      shown = new Blackboard((address) => history.pushState(null, '', address + location.hash));
      replace(main, headings(page, null), shown.node);
    }
    await shown.show(new URLSearchParams(location.search));
  } else {
    const pushed = (asked) => {
      history.pushState(null, '', addressOf(view, asked));
      main.querySelector('.tabs')?.replaceWith(tabs(page, view, asked));
    };
    const go = (other, state) => { history.pushState(null, '', addressOf(other, state)); show(); };
    const state = stateOf(location.search, view);
    replace(main, headings(page, view, state), view.upload || view.waits ? null : opening(view, state));
    shown = new View(page, view, await verbOf(view.verb), names, pushed, go);
    replace(main, headings(page, view, state), shown.node);
    await shown.show(state);
  }
  document.body.dataset.ready = String(Number(document.body.dataset.ready ?? 0) + 1);
}

// Links within the pages change the state without loading anew.
document.addEventListener('click', (event) => {
  const anchor = event.target.closest('a[href^="/"]');
  if (!anchor || event.metaKey || event.ctrlKey || event.shiftKey || anchor.target || anchor.hasAttribute('download')) return;
  event.preventDefault();
  history.pushState(null, '', anchor.getAttribute('href'));
  show();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});
window.addEventListener('popstate', show);

widened(() => { if (shown instanceof View) shown.answerNow(); else shown?.redraw(); });

window.headway = { redraws }; // for the tests: how often a picture was drawn
const all = await declared('/api/pages').catch((error) => { replace(main, el('p', { class: 'fault' }, error.message)); throw error; });
({ pages, names } = all);
document.body.append(...lists(names));
await show();
