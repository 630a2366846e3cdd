// A view: one question with its form, and the answer: headline, numbers, pictures, what binds, what helps, table, notes.
import { ask, cancel, run, Fault } from './ask.js';
import { Chart, Pump, png, widthOf } from './chart.js';
import { Form } from './controls.js';
import { commandLine, copied, el, replace, saved, tell } from './dom.js';
import { Parts } from './fresh.js';
import { Drop, RunsChoice, keep } from './files.js';
import { Keep } from './keep.js';
import { earlier, keepEarlier, narrow, work } from './wait.js';
import { filters, table, wide } from './table.js';
import { number } from './tree.js';

const MOVING = { parts: ['figures', 'pictures'] }; // of an answer while a slider moves
const FIGURES = 8;
const nameOf = (figure) => (/[a-z]/i.test(figure.name) ? figure.name : figure.doc);
const KEYS = new Set(['fact', 'quantity', 'kind']);

export class View {
  constructor(page, view, verb, names, pushed, go) {
    Object.assign(this, { page, view, pushed, go });
    this.form = new Form(page.name, view, verb, names, (name, word) => this.moved(name, word), (isEntered) => this.settled(isEntered));
    this.drop = view.upload ? new Drop(view, () => this.settled()) : null;
    this.runs = new RunsChoice((name) => this.goBy(name));
    this.charts = new Map();
    this.trees = new Map(); // which numbers unfold, as the last answer at rest told
    this.answer = el('section', { class: 'answer', 'aria-label': 'The answer' });
    this.parts = new Parts(() => this.inputs());
    this.chosen = new Map(); // words of columns, of rows that are looked at
    this.asked = 0; // questions at rest so far: only the last is answered
    this.pump = new Pump((question) => this.move(question), (error) => this.say(error, this.parts.key));
    this.node = el('div', { class: 'view' }, this.aside(), this.answer);
    this.node.addEventListener('input', () => this.parts.look());
    this.skeleton();
  }

  aside() {
    const presets = (this.view.preset ?? []).map((preset) => {
      const button = el('button', { type: 'button' }, preset.name);
      button.addEventListener('click', () => { this.form.set({ words: preset.words, flags: preset.flags ?? {} }); this.settled(); this.shut(); });
      return button;
    });
    return el('aside', { class: 'question', 'aria-label': 'The question' }, this.runs.node, this.drop?.node,
      el('details', { class: 'fold', open: !narrow.matches }, el('summary', {}, 'Change the question'),
        presets.length ? el('div', { class: 'presets', role: 'group', 'aria-label': 'Presets' }, presets) : null, this.form.node,
        el('button', { type: 'button', class: 'shut-fold', onclick: () => this.shut() }, 'To the answer')));
  }

  // On a phone the answer comes to the eye, and the form folds.
  shut() {
    const fold = this.node.querySelector('.fold');
    fold.open = !narrow.matches;
    if (narrow.matches) fold.scrollIntoView({ block: 'start' });
  }

  skeleton() {
    this.headline = el('p', { class: 'headline', id: 'answer', role: 'status' });
    this.progress = el('div', { class: 'progress', hidden: true });
    this.command = el('div');
    this.figures = el('div', { class: 'figures', role: 'group', 'aria-label': 'Numbers of the answer' });
    this.pictures = el('div', { class: 'pictures' });
    this.rest = el('div', { class: 'rest' });
    this.keep = new Keep(`${this.page.name}/${this.view.name}`);
    const now = el('div', { class: 'now' }, this.headline, this.progress, this.figures, this.keep.offer);
    replace(this.answer, el('h2', { class: 'unseen' }, 'The answer'), el('div', { class: 'beside' }, now, this.keep.node), this.pictures, this.rest, this.command);
  }

  // What decides the answer: the form, a dropped file, and a fact that is being edited in the table.
  inputs() {
    return { ...this.form.get(), file: this.drop?.serial, tool: this.drop?.files.length && this.drop.tool.value, edit: this.edited };
  }

  question(width = widthOf(this.pictures)) {
    const { words, flags } = this.form.get();
    const first = this.view.verb === 'show' ? words.join(' ').split(' ') : words;
    const upload = this.drop?.files.length ? { upload: this.drop.upload } : {};
    const file = this.view.verb === 'calibrate' ? ['file'] : [];
    const parts = { parts: ['answer', 'figures', 'table', ...(this.view.bare ? [] : ['pictures']), 'notes', ...file] };
    return { verb: this.view.verb, words: first, flags, width, ...parts, ...upload };
  }

  show(state) {
    this.form.set(state);
    return this.view.waits ? this.offer() : this.answerNow();
  }

  // isEntered: by the key Enter, after which the eye wants the answer
  async settled(isEntered = false) {
    this.pushed(this.form.get());
    const answered = this.view.waits ? this.offer() : this.answerNow();
    if (isEntered) this.reveal();
    await answered;
    if (isEntered) this.reveal();
  }

  reveal() {
    const { top, bottom } = this.headline.getBoundingClientRect();
    if (top < 0 || bottom > innerHeight) this.headline.scrollIntoView({ block: 'start' });
  }

  // Whether this view goes by runs that the tab keeps.
  goesBy() {
    if (this.form.controls.has('calibration')) this.runs.show(this.form.get().flags.calibration);
  }

  goBy(name) {
    const { words, flags } = this.form.get();
    this.form.set({ words, flags: { ...flags, calibration: name } });
    this.settled();
  }

  // What takes the machine for a while begins when it is told to.
  offer() {
    this.asked += 1; // whatever runs belongs to other inputs
    cancel();
    this.parts.look();
    this.answer.setAttribute('aria-busy', 'false');
    if (!this.headline.textContent) this.headline.textContent = this.view.waits;
    replace(this.progress, el('button', { type: 'button', class: 'begin', onclick: () => this.answerNow() }, 'Run it'));
    this.progress.hidden = false;
  }

  // A point of a picture that was picked: the same question with its value, or the layout that it stands for, as another view's question.
  picked({ verb, words, flags }) {
    if (!verb) {
      const state = this.form.get();
      this.form.set({ words: state.words, flags: { ...state.flags, ...flags } });
      this.settled();
      return;
    }
    const view = this.page.views.find((entry) => entry.verb === verb);
    this.go(view, { words, flags });
  }

  // While a slider moves: a live view asks itself, a plan asks its own layout; the rest waits for the release.
  moved(name, word) {
    const of = this.parts.key;
    this.parts.look();
    if (this.view.live) this.pump.push({ of, question: { ...this.question(this.width), ...MOVING } });
    else if (this.follow) {
      this.follow = { ...this.follow, flags: { ...this.follow.flags, [name]: word } };
      this.pump.push({ of, question: { ...this.follow, width: this.width, parts: ['pictures'], picture: 'batch' } });
    }
  }

  async move({ of, question }) {
    const before = this.asked;
    const chart = this.charts.get(question.picture || this.first);
    const answer = await ask({ ...question, picture: question.picture ?? this.first ?? '', ...chart?.still });
    if (before !== this.asked) return; // released meanwhile
    if (this.view.live) { this.showFigures(answer, () => question); this.parts.show(of, this.figures); }
    for (const picture of answer.pictures) await this.draw(of, picture);
  }

  async draw(of, picture) {
    const chart = this.charts.get(picture.name);
    if (!chart) return;
    await chart.show(picture);
    this.parts.show(of, chart.node);
  }

  async answerNow() {
    const question = this.question();
    this.width = question.width; // while a slider moves too: to measure is to lay out
    const of = this.parts.key;
    this.parts.look();
    this.goesBy();
    if (this.drop && !this.drop.files.length) {
      this.asked += 1;
      cancel();
      for (const part of [this.figures, this.pictures, this.rest, this.command]) replace(part);
      this.charts.clear();
      this.answer.setAttribute('aria-busy', 'false');
      this.headline.textContent = this.view.asks;
      return;
    }
    this.asked += 1;
    const mine = this.asked;
    const isLast = () => mine === this.asked;
    this.answer.setAttribute('aria-busy', 'true');
    this.waiting(of);
    let others = null;
    try {
      const progress = (done, total) => { if (isLast()) this.showProgress(done, total); };
      const drafted = (answer) => { if (isLast()) this.showDraft(answer, of, isLast); };
      const answer = await (this.view.heavy ? run(question, progress, drafted) : ask(question));
      if (isLast()) others = await this.showAnswer(answer, question, of, isLast);
      if (this.view.waits) { await others?.(); others = null; } // what it offers next ends what is drawn for this
    } catch (error) { if (isLast()) this.say(error, of); } finally {
      if (isLast()) {
        this.pictures.querySelector('.ghost')?.remove();
        if (this.view.waits) this.offer(); else this.progress.hidden = true;
        this.answer.setAttribute('aria-busy', 'false');
      }
    }
    await others?.().catch((error) => { if (isLast()) this.say(error, of); });
  }

  // The answer as far as it is measured: nothing of it unfolds yet, since to ask would end the run.
  async showDraft(answer, of, isLast) {
    this.headline.textContent = answer.answer;
    const { columns, rows } = answer.table;
    replace(this.rest, wide('Table of the numbers so far', table(columns, rows, (cell) => cell.text)));
    this.parts.show(of, this.headline, this.rest);
    await (await this.showPictures(answer, of, isLast))();
  }

  // What went wrong with these inputs; what stands below belongs to those before.
  say(error, of) {
    if (error.name === 'AbortError') return;
    this.answer.classList.add('faulty');
    this.headline.textContent = error instanceof Fault ? error.message : String(error);
    this.parts.show(of, this.headline);
  }

  // What is being done, in words, and an earlier answer of the same question where there is one.
  waiting(of) {
    const first = !this.headline.textContent;
    if (!this.view.heavy && !first) return;
    const before = first && this.view.heavy ? earlier(this.page, this.view, of) : null;
    if (before) {
      this.headline.textContent = before.answer;
      this.showFigures(before, null);
      this.parts.show('earlier', this.headline, this.figures);
    }
    const says = el('p', { class: 'work', role: 'status' }, before ? 'An earlier answer; computing again. ' : '', work(this.view, this.form.get()));
    if (first && !before) replace(this.pictures, el('div', { class: 'ghost', 'aria-hidden': 'true' }));
    this.progress.hidden = false;
    if (!this.view.heavy) { replace(this.progress, says); return; }
    const stop = el('button', { type: 'button', onclick: () => { cancel(); if (this.view.waits) this.offer(); else this.progress.hidden = true; } }, 'Cancel');
    this.bar = el('progress', { 'aria-label': 'Progress' });
    this.count = el('span', { class: 'quiet' });
    replace(this.progress, says, this.bar, this.count, stop);
  }

  showProgress(done, of) {
    this.bar.max = of || 1;
    this.bar.value = done;
    this.count.textContent = `${done.toLocaleString('en')} of ${of.toLocaleString('en')} evaluated`;
  }

  async showAnswer(answer, question, of, isLast) {
    this.answer.classList.remove('faulty');
    this.follow = answer.follow;
    this.headline.textContent = answer.answer;
    const asked = () => question;
    this.showFigures(answer, asked);
    if (this.view.heavy && !this.drop && !question.flags.calibration) keepEarlier(this.page, this.view, of, answer);
    replace(this.command, commandLine(answer.command));
    if (answer.file) keep(answer.file, answer.answer.split(':')[0]);
    replace(this.rest, this.uses(answer), this.binds(answer), this.helps(answer), this.launch(answer), this.table(answer, asked), this.notes(answer), this.exports(question, Boolean(answer.pictures?.length)));
    this.keep.last = { answer: answer.answer, whose: answer.whose, figures: this.chosenFigures(answer).map((figure) => ({ label: nameOf(figure), text: figure.text })), command: answer.command };
    this.keep.offer.hidden = false;
    this.parts.show(of, this.headline, this.figures, this.keep.offer, this.command, this.rest);
    return answer.pictures ? this.showPictures(answer, of, isLast) : null;
  }

  showFigures(answer, asked) {
    const wanted = this.chosenFigures(answer);
    for (const figure of wanted) if ('explains' in figure) this.trees.set(figure.key, figure.explains);
    this.asks = asked;
    const unfolds = (figure) => Boolean(asked) && this.trees.get(figure.key) !== false;
    const cards = JSON.stringify([answer.whose, wanted.map((figure) => [figure.key, nameOf(figure), unfolds(figure)])]);
    if (cards === this.cards && this.figures.firstChild) { // the same cards: their numbers alone
      wanted.forEach((figure, place) => tell(this.figures.querySelectorAll('.number-card')[place].firstChild, figure.text));
      return;
    }
    this.cards = cards;
    replace(this.figures, answer.whose ? el('p', { class: 'quiet' }, answer.whose) : null, wanted.map((figure) => el('div', { class: 'number-card' },
      unfolds(figure) ? number(figure.text, { row: figure.row, key: figure.key }, () => this.asks(), this.view.heavy) : el('b', {}, figure.text),
      el('span', { title: figure.doc }, nameOf(figure)))));
  }

  chosenFigures(answer) {
    return this.view.figures.map((key) => answer.figures.find((figure) => figure.key === key)).filter(Boolean).slice(0, FIGURES);
  }

  // The first picture; what this gives draws the others, which lie below it.
  async showPictures(answer, of, isLast) {
    const names = answer.pictures.map((picture) => picture.name);
    if (names.length !== this.charts.size || names.some((name) => !this.charts.has(name))) {
      for (const chart of this.charts.values()) { chart.clear(); this.parts.drop(chart.node); }
      this.charts = new Map(names.map((name) => [name, new Chart((pick) => this.picked(pick))]));
      this.first = names[0];
      replace(this.pictures, [...this.charts.values()].map((chart) => chart.node));
      const moved = this.charts.get(this.view.live ? this.first : 'batch') ?? this.charts.get(this.first);
      if (this.form.sliders.size) moved?.node.before(this.form.slides);
    }
    const [first, ...others] = answer.pictures;
    if (first) await this.draw(of, first);
    return async () => {
      for (const picture of others) {
        await new Promise((resolve) => setTimeout(resolve)); // what stands is painted
        if (isLast()) await this.draw(of, picture);
      }
    };
  }

  // Pages whose answers can go by the runs just read.
  uses(answer) {
    return answer.uses?.length ? el('section', { class: 'uses' }, el('h3', {}, 'Go by these runs'),
      el('p', {}, answer.uses.map(({ title, at }) => el('a', { class: 'begin', href: at + location.hash }, title)))) : null;
  }

  binds(answer) {
    return answer.binds ? el('section', {}, el('h3', {}, 'What binds'), el('p', {}, answer.binds)) : null;
  }

  helps(answer) {
    if (!answer.helps?.length) return null;
    const most = Math.max(...answer.helps.map((help) => help.gain ?? 0));
    return el('section', {}, el('h3', {}, 'What would help, the most first'), el('ol', { class: 'helps' }, answer.helps.map((help) => el('li', {},
      el('span', {}, help.change), el('span', { class: 'quiet' }, help.effect),
      help.gain && most > 0 ? el('meter', { min: 0, max: most, value: help.gain, 'aria-label': help.effect }) : null))));
  }

  launch(answer) {
    if (!answer.launch?.length) return null;
    const text = answer.launch.join('\n');
    const copy = el('button', { type: 'button', class: 'copy', 'aria-label': 'Copy the launch lines' }, 'Copy');
    copy.addEventListener('click', () => copied(copy, text));
    return el('section', {}, el('h3', {}, 'Launch'), el('div', { class: 'launch' }, el('pre', { tabindex: 0 }, text), copy));
  }

  table(answer, asked) {
    const { columns, rows, more, after } = answer.table;
    const lines = after.filter((line) => line.trim()).map((line) => el('pre', { class: 'line' }, line));
    if (!rows.length) return lines.length ? el('section', {}, lines) : null;
    const node = table(columns, rows, (cell, column, row) => this.cell(cell, column, row, asked));
    return el('section', { class: 'numbers' }, el('h3', {}, 'The numbers'), this.view.filters ? filters(this.view.filters, answer.table, node, this.chosen) : null,
      wide('Table of the numbers', node),
      more > 0 ? el('p', { class: 'quiet' }, `and ${more} more rows in the CSV`) : null, lines.length ? el('div', { class: 'lines' }, lines) : null);
  }

  // A number that can be explained; a fact of one's own chip can be edited where it stands.
  cell(cell, column, row, asked) {
    if (this.view.edits && column.key === 'value' && /^[\d$-]/.test(cell.text)) {
      const fact = row[0].text;
      const input = el('input', { type: 'text', value: cell.text === '-' ? '' : cell.text, 'aria-label': `${fact.replaceAll('_', ' ')} of the chip`, spellcheck: 'false' });
      input.addEventListener('input', () => { this.edited = [fact, input.value]; });
      input.addEventListener('change', () => this.edit(fact, input.value));
      return input;
    }
    if (cell.key) return number(cell.text, { row: cell.row, key: cell.key }, asked, this.view.heavy);
    return KEYS.has(column.key) ? cell.text.replaceAll('_', ' ') : cell.text; // keys of facts and rows, as words
  }

  edit(fact, value) {
    const state = this.form.get();
    const others = [state.flags.set ?? []].flat().filter((text) => !text.startsWith(`chip.${fact}=`));
    const edits = value.trim() ? [...others, `chip.${fact}=${value.replaceAll(' ', '')}`] : others;
    this.form.set({ words: state.words, flags: { ...state.flags, set: edits } });
    this.edited = undefined;
    this.settled();
  }

  notes(answer) {
    const notes = [answer.checked, ...(answer.notes ?? []), answer.undrawn && !answer.pictures?.length ? `no picture: ${answer.undrawn}` : null].filter(Boolean);
    return notes.length ? el('details', { class: 'notes' }, el('summary', {}, `${notes.length} note${notes.length === 1 ? '' : 's'} on what was assumed`), el('ul', {}, notes.map((note) => el('li', {}, note)))) : null;
  }

  exports(question, drawn) {
    const asked = (parts, more = {}) => {
      const { axes, picture, ...plain } = question;
      return (this.view.heavy ? run : ask)({ ...plain, parts, ...more });
    };
    const name = `headway-${this.view.verb}`;
    const every = {
      JSON: async () => saved(`${name}.json`, (await asked(['json'])).json, 'application/json'),
      CSV: async () => saved(`${name}.csv`, (await asked(['csv'])).csv, 'text/csv'),
      PNG: async () => {
        const { pictures } = await asked(['pictures'], { theme: 'light', width: 760 });
        for (const picture of pictures) saved(`${name}-${picture.name || 'picture'}.png`, await png(picture), 'image/png');
      },
      'One HTML file': async () => saved(`${name}.html`, (await asked(['answer', 'figures', 'table', 'pictures', 'notes', 'html'], { theme: 'light' })).html, 'text/html'),
    };
    if (!drawn) delete every.PNG;
    if (this.view.verb === 'show') every['The chip’s file'] = async () => saved('my_chip.toml', (await asked(['file'])).file, 'text/plain');
    if (this.view.verb === 'calibrate') every['The profile'] = async () => saved('runs.toml', (await asked(['file'])).file, 'text/plain');
    return el('div', { class: 'exports', role: 'group', 'aria-label': 'Take it away' }, el('span', { class: 'quiet' }, 'Take it away'),
      Object.entries(every).map(([title, work]) => el('button', { type: 'button', onclick: () => work().catch((error) => this.say(error, this.parts.key)) }, title)));
  }
}
