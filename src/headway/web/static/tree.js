// How a number comes about: the tree of laws, inputs and sources, unfolded beside the page.
import { ask, run, Fault } from './ask.js';
import { commandLine, el, replace } from './dom.js';
import { belongs } from './fresh.js';

const panel = () => document.getElementById('tree');
let opener = null;

export function close() {
  belongs(panel())?.parts.drop(panel());
  panel().hidden = true;
  document.body.classList.remove('beside');
  opener?.focus();
  opener = null;
}

document.addEventListener('keydown', (event) => { if (event.key === 'Escape' && !panel().hidden) close(); });

// A number that can be clicked: `cell` says its row and its key.
export function number(text, cell, question, heavy, attributes = {}) {
  const button = el('button', { type: 'button', class: 'number', title: 'How this number comes about', ...attributes }, text);
  button.addEventListener('click', () => open(button, cell, question(), heavy));
  return button;
}

async function open(button, cell, question, heavy) {
  opener = button;
  belongs(panel())?.parts.drop(panel());
  const of = belongs(button);
  const shut = el('button', { type: 'button', class: 'shut', 'aria-label': 'Close' }, '×');
  shut.addEventListener('click', close);
  const content = el('div', {}, el('p', { class: 'waiting' }, 'One moment.'));
  replace(panel(), shut, content);
  panel().hidden = false;
  of?.parts.show(of.key, panel());
  document.body.classList.add('beside');
  shut.focus();
  try {
    const { parts, picture, axes, shape, ...asked } = question;
    const answer = await (heavy ? run : ask)({ ...asked, explain: cell });
    replace(content, el('h2', {}, answer.name, ' ', el('b', {}, answer.tree.text ?? '')), el('p', { class: 'says' }, answer.says), branch(answer.tree, '', 0), commandLine(answer.command));
  } catch (error) {
    if (error.name === 'AbortError') return;
    replace(content, el('h2', {}, 'This number'), el('p', { class: 'fault' }, error instanceof Fault ? error.message : String(error)));
  }
}

const words = (name) => String(name ?? '').replace(/_s$/, '').replaceAll('_', ' '); // a time is named without its unit

// One node: what it is called where it is used, its value, its equation and source, then what goes into it.
function branch(node, as, depth) {
  if (Array.isArray(node)) return el('div', {}, node.map((item, place) => branch(item, `${as} ${place + 1}`, depth)));
  if (node === null || typeof node !== 'object') return el('p', { class: 'leaf' }, words(as), ' ', String(node));
  if (!('value' in node)) return el('div', {}, Object.entries(node).map(([name, item]) => branch(item, name, depth)));
  const law = node.equation !== undefined;
  const title = as && law && node.name && node.name !== as ? `${words(as)} · ${words(node.name)}` : words(as || node.name);
  const head = [el('span', { class: 'what' }, title), ' ', el('b', {}, node.text ?? String(node.value))];
  const origin = [node.kind, node.source, node.date && node.date !== 'undated' ? node.date : null].filter(Boolean).join(', ');
  const about = [
    law ? el('code', { class: 'equation' }, node.equation) : null,
    ...(node.taken ?? []).map((taken) => el('p', { class: 'quiet' }, `${taken.of}: ${taken.is} decides`)),
    origin ? el('p', { class: 'source' }, origin) : null,
  ];
  const inputs = Object.entries(node.inputs ?? {});
  if (!law && !inputs.length) return el('div', { class: 'leaf' }, el('p', {}, head), about);
  return el('details', { open: depth < 1 }, el('summary', {}, head), about, inputs.map(([name, item]) => branch(item, name, depth + 1)));
}
