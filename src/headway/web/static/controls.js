// A form from a verb's own declarations: native inputs, each with its label, its help and, where the page says so, a slider.
import { board } from './ask.js';
import { el, unique } from './dom.js';

export class Form {
  // view: as in the pages' file; verb: its declarations; moved(name, word) while a slider moves; changed(isEntered) when a value is settled, by Enter or otherwise
  constructor(page, view, verb, names, moved, changed) {
    Object.assign(this, { page, view, names, moved, changed });
    this.controls = new Map();
    this.sliders = new Map();
    this.slides = el('form', { class: 'sliders', 'aria-label': 'Inputs that move the picture' }); // which stand where the view puts them
    const every = verb.groups.flatMap((group) => group.controls);
    const words = every.filter((control) => !control.flag && control.name !== 'rows' && !view.without?.includes(control.name));
    const front = view.front.map((name) => every.find((control) => control.name === name)).filter(Boolean);
    const rest = verb.groups
      .map((group) => ({ ...group, controls: group.controls.filter((control) => control.flag && !front.includes(control)) }))
      .filter((group) => group.controls.length);
    this.words = words;
    this.node = el('form', { class: 'controls', 'aria-label': 'The question', autocomplete: 'off' },
      words.map((control, place) => this.field(control, `w${place}`)),
      front.map((control) => this.field(control, control.name)),
      rest.length ? this.further(rest) : null);
    for (const form of [this.node, this.slides]) {
      form.addEventListener('submit', (event) => { event.preventDefault(); this.changed(this.isEntered); });
      form.addEventListener('change', (event) => { if (form === this.node) this.follow(event.target); this.changed(form === this.node && this.isEntered); });
    }
    this.node.addEventListener('keydown', (event) => { this.isEntered = event.key === 'Enter'; });
  }

  further(groups) {
    return el('details', { class: 'further' }, el('summary', {}, 'Every assumption'),
      groups.map((group) => el('fieldset', {}, el('legend', {}, group.title), group.controls.map((control) => this.field(control, control.name)))));
  }

  field(control, key) {
    const id = unique(key);
    const input = this.input(control, id);
    this.controls.set(key, { control, input });
    const about = el('p', { class: 'about', id: `${id}-about` }, control.help || control.hint);
    input.setAttribute('aria-describedby', `${id}-about`);
    const label = el('label', { for: id }, control.label);
    const stops = this.view.sliders?.[control.name];
    if (stops) this.slides.append(this.slider(key, control, input, stops));
    const kind = control.kind === 'switch' ? 'field switch' : 'field';
    if (control.kind === 'switch') return el('div', { class: kind }, input, label, about);
    return el('div', { class: kind }, label, input, about);
  }

  input(control, id) {
    if (control.kind === 'switch') return el('input', { id, type: 'checkbox' });
    if (control.kind === 'choice') {
      const none = control.default ? `${control.default} (default)` : 'not given';
      return el('select', { id }, el('option', { value: '' }, none), control.choices.map((choice) => el('option', { value: choice }, choice)));
    }
    const list = { model: 'models', machine: 'machines', subject: 'subjects', sheet: 'sheets' }[control.kind];
    const hint = control.default ? `default ${control.default}` : control.hint;
    return el('input', { id, type: 'text', list, placeholder: hint, spellcheck: 'false', autocapitalize: 'off', inputmode: null });
  }

  slider(key, control, input, stops) {
    const word = el('output', {});
    const range = el('input', { type: 'range', min: 0, max: stops.length - 1, step: 1, 'data-slider': key, 'aria-label': `${control.label}, slider` });
    range.addEventListener('input', () => {
      const stop = stops[range.valueAsNumber];
      input.value = stop.word;
      word.textContent = stop.text;
      range.setAttribute('aria-valuetext', stop.text);
      this.moved(control.name, stop.word);
    });
    this.sliders.set(key, { range, stops, word });
    return el('div', { class: 'field slide' }, el('span', { class: 'what', 'aria-hidden': 'true' }, control.label), word, range);
  }

  // The slider goes to the stop whose word was typed, or to the nearest, which the server knows.
  async follow(input) {
    for (const [key, entry] of this.controls) {
      const slider = this.sliders.get(key);
      if (entry.input !== input || !slider) continue;
      const at = slider.stops.findIndex((stop) => stop.word === input.value.trim());
      if (at >= 0) slider.range.value = String(at);
      else if (input.value.trim()) {
        const place = await board('stop', { page: this.page, view: this.view.name, flag: key, word: input.value.trim() }).catch(() => null);
        if (place) slider.range.value = String(place.at);
      }
      slider.word.textContent = at >= 0 ? slider.stops[at].text : input.value;
      slider.range.setAttribute('aria-valuetext', slider.word.textContent);
    }
  }

  set({ words, flags }) {
    for (const [key, { control, input }] of this.controls) {
      if (key.match(/^w\d+$/) && !control.flag) {
        const place = Number(key.slice(1));
        input.value = (place === this.words.length - 1 ? words.slice(place).join(' ') : words[place]) ?? '';
      } else if (control.kind === 'switch') input.checked = Boolean(flags[control.name]);
      else input.value = [flags[control.name] ?? ''].flat().join('; ');
      this.follow(input);
    }
  }

  get() {
    const words = [];
    const flags = {};
    for (const [key, { control, input }] of this.controls) {
      const text = input.type === 'checkbox' ? '' : input.value.trim();
      if (key.match(/^w\d+$/) && !control.flag) { if (text) words.push(...(control.name === 'values' ? text.split(/\s+/) : [text])); } // name=value pairs
      else if (control.kind === 'switch') { if (input.checked) flags[control.name] = true; }
      else if (text) flags[control.name] = control.several ? text.split(';').map((part) => part.trim()).filter(Boolean) : text;
    }
    return { words, flags };
  }
}

export function lists(names) {
  const entries = { models: names.model, machines: names.machine, sheets: names.sheet, subjects: [...names.machine, ...names.model] };
  return Object.entries(entries).map(([id, values]) => el('datalist', { id }, values.map((value) => el('option', { value }))));
}
