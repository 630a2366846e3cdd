// Files that are dropped: read here, sent with their question, written nowhere but beside the worker while it answers; and what runs of
// one's own say, which this tab keeps until it is closed and which goes with every question that is to go by them.
import { el, replace, unique } from './dom.js';

const NAME = 'runs'; // as --calibration names it
const KEY = 'headway-runs';
const TOOLS = { vllm: 'vLLM or SGLang bench_serving', guidellm: 'GuideLLM', 'trtllm-bench': 'trtllm-bench', 'llama-bench': 'llama-bench', inferencex: 'InferenceX', table: 'a CSV of runs' };
let runs = null;
let last = []; // files that were dropped last, which the next view of results begins with
try { runs = JSON.parse(sessionStorage.getItem(KEY)); } catch { /* private window */ }

export function keep(text, about) {
  runs = { text, about };
  try { sessionStorage.setItem(KEY, JSON.stringify(runs)); } catch { /* private window, or too large */ }
}

// A question with the runs that it names.
export function withRuns(question) {
  if (question.flags?.calibration !== NAME || !runs) return question;
  return { ...question, upload: [...(question.upload ?? []), { tool: 'calibration', name: `${NAME}.toml`, text: runs.text }] };
}

// Says whether a view goes by runs of one's own, and lets it, or not.
export class RunsChoice {
  // set(flag value or '') when the reader chooses
  constructor(set) {
    this.set = set;
    this.node = el('div', { class: 'own-runs', hidden: true });
  }

  show(value) {
    const used = value === NAME;
    this.node.hidden = !runs && !used;
    if (this.node.hidden) return;
    const words = runs ? `${used ? 'Goes by' : 'Without'} your runs: ${runs.about}` : 'Your runs are no longer in this tab.';
    const button = runs
      ? el('button', { type: 'button', 'aria-pressed': String(used), onclick: () => this.set(used ? '' : NAME) }, used ? 'Leave them out' : 'Use them')
      : el('a', { href: `/runs${location.hash}` }, 'Drop them again');
    replace(this.node, el('p', {}, words), button);
  }
}

// The place where files are chosen or dropped: up to `view.upload` of them, each by its name.
export class Drop {
  constructor(view, changed) {
    Object.assign(this, { changed, most: view.upload, serial: 0, isTable: view.verb === 'predict' });
    this.files = this.isTable ? [] : last.slice(-view.upload);
    this.knows = view.verb !== 'score'; // by itself what wrote a file
    const id = unique('tool');
    this.tool = el('select', { id }, Object.entries(TOOLS).map(([value, text]) => el('option', { value }, text)));
    if (this.knows) this.tool.value = 'table';
    this.tool.addEventListener('change', () => { if (this.files.length) changed(); });
    const several = this.most > 1;
    this.input = el('input', { type: 'file', id: unique('file'), accept: '.json,.jsonl,.csv,.md,.sql', multiple: several });
    this.input.addEventListener('change', () => this.read([...this.input.files]));
    this.input.addEventListener('click', () => { this.input.value = ''; }); // a file that was written anew is chosen anew
    this.input.addEventListener('cancel', () => this.show());
    this.list = el('ul', { class: 'files', 'aria-label': 'Files' });
    const label = this.isTable ? 'Table of runs, a CSV' : several ? `Benchmark files, one to ${this.most}` : 'Benchmark file';
    this.node = el('div', { class: 'drop' }, this.knows ? null : el('div', { class: 'field' }, el('label', { for: id }, 'Written by'), this.tool),
      el('div', { class: 'field' }, el('label', { for: this.input.id }, `${label}: choose, or drop here`), this.input), this.list,
      el('p', { class: 'quiet' }, several ? 'Stays on this machine. What the runs say is kept in this tab, until you close it.' : 'Stays on this machine; this page forgets it when you close it.'));
    const over = (is) => (event) => { event.preventDefault(); this.node.classList.toggle('over', is); };
    this.node.addEventListener('dragover', over(true));
    this.node.addEventListener('dragleave', over(false));
    this.node.addEventListener('drop', (event) => { over(false)(event); this.read(event.dataTransfer.files); });
    this.show();
  }

  async read(chosen) {
    for (const file of chosen) {
      const plain = file.name.replace(/[^\w.-]/g, '_').replace(/^[^A-Za-z0-9]+/, '').replace(/\.(?=.*\.)/g, '_');
      if (plain.endsWith('.csv') && this.tool.value === 'vllm') this.tool.value = 'table';
      const text = await file.text();
      if (this.files.some((other) => other.text === text)) continue;
      const taken = (name) => this.files.some((other) => other.name === name);
      let name = plain;
      for (let number = 2; taken(name); number += 1) name = plain.replace(/(?=\.\w+$)/, `_${number}`);
      this.files = [...this.files, { name, text, file }].slice(-this.most); // the oldest makes room
    }
    this.told();
  }

  told() {
    this.serial += 1;
    if (!this.isTable) last = this.files;
    this.show();
    this.changed();
  }

  // The native field holds the same files as the list.
  show() {
    const held = new DataTransfer();
    for (const { file } of this.files) held.items.add(file);
    this.input.files = held.files;
    replace(this.list, this.files.map((file) => el('li', {}, el('span', {}, file.name),
      el('button', { type: 'button', 'aria-label': `Leave out ${file.name}`, onclick: () => { this.files = this.files.filter((other) => other !== file); this.told(); } }, 'Leave out'))));
  }

  get upload() { return this.files.map(({ name, text }) => ({ tool: this.tool.value, name, text })); }
}
