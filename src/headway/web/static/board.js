// The blackboard: a chapter's words, its claims with verdicts, a curve beside each step that moves with its inputs, and flashcards.
import { ask, board, links, live } from './ask.js';
import { Chart, Pump, widthOf } from './chart.js';
import { commandLine, el, replace, unique } from './dom.js';
import { drawing } from './drawings.js';
import { Parts, keyOf } from './fresh.js';
import { folded, table, wide } from './table.js';
import { number } from './tree.js';

const INPUTS = [{ name: 'input' }, { name: 'value', number: true }, { name: 'where it is from' }]; // columns of a claim's

export class Blackboard {
  constructor(pushed) {
    this.pushed = pushed;
    this.node = el('div', { class: 'board' });
    this.stages = [];
  }

  async show(query) {
    const id = query.get('claim');
    if (!this.label) replace(this.node, el('p', { class: 'work opening' }, id ? `Recomputing claim ${id}, and opening its chapter …` : `Opening chapter ${query.get('chapter') ?? '1'}: its words, and its claims recomputed …`));
    const claim = id ? await board('claim', { id, with: query.getAll('with'), ...(query.get('axis') ? { axis: query.get('axis') } : {}) }) : null;
    const label = claim?.chapter ?? query.get('chapter') ?? '1';
    if (this.label !== label) await this.chapter(label);
    this.query = query;
    if (claim) {
      const stage = this.stages.find((entry) => entry.claims.some((listed) => listed.id === claim.id)) ?? this.stages[0];
      await stage.openClaim(claim);
      stage.node.scrollIntoView({ block: 'start' });
    }
  }

  async chapter(label) {
    const chapter = await board('chapter', { chapter: label });
    this.label = label;
    for (const stage of this.stages) stage.leave();
    this.stages = chapter.sections.map((section) => new Stage(section, this.pushed));
    const contents = el('nav', { class: 'contents', 'aria-label': 'Chapters' }, el('ol', {}, chapter.contents.map((entry) => el('li', {},
      el('a', { href: links.chapter(entry), 'aria-current': entry.label === label ? 'page' : null },
        el('span', { class: 'numeral' }, entry.label), entry.title)))));
    const counts = `${chapter.counts.agree} claims agree, ${chapter.counts.differ} differ${chapter.counts.open ? `, ${chapter.counts.open} open` : ''}`;
    const about = chapter.lecture;
    const head = el('header', { class: 'chapter-head' },
      el('p', { class: 'quiet' }, `${about.title}. ${about.speaker}, ${about.host}, ${about.date}`),
      el('p', { class: 'headline', id: 'answer', role: 'status' }, chapter.answer), el('p', { class: 'quiet' }, counts));
    const asking = live ? [new Card().node, new Cards(label).node, commandLine(chapter.command)] : commandLine(`headway web lecture ${label}`, chapter.asks);
    replace(this.node, contents, el('article', { class: 'chapter' }, head, this.stages.map((stage) => stage.node), asking));
    for (const stage of this.stages) stage.watch();
  }

  redraw() { for (const stage of this.stages) stage.redraw(); }
}


// One step of the argument: its words and claims, and beside them what moves.
class Stage {
  constructor(section, pushed) {
    this.section = section;
    this.claims = section.claims;
    this.pushed = pushed;
    this.chart = new Chart();
    this.parts = new Parts(() => this.inputs());
    this.asked = 0; // questions at rest so far: only the last is answered
    this.pump = new Pump((question) => this.move(question), (error) => this.say(error, this.parts.key));
    this.controls = el('form', { class: 'sliders', 'aria-label': `Inputs of ${section.title}` });
    this.controls.addEventListener('submit', (event) => event.preventDefault());
    this.status = el('p', { class: 'says', role: 'status' });
    this.command = el('div');
    this.detail = el('div', { class: 'claim-detail' });
    this.moving = el('div', { class: 'moving' });
    this.numbers = el('div');
    this.side = el('div', { class: 'side' }, this.moving, this.chart.node, this.numbers, this.controls, this.status, this.command, this.detail);
    this.list = el('ul', { class: 'claims' }, this.claims.map((claim) => this.claimLine(claim)));
    this.node = el('section', { class: 'stage' }, el('div', { class: 'prose' }, el('h2', {}, section.title),
      section.paragraphs.map((text) => el('p', {}, text)), this.list), section.stage || this.claims.some((claim) => claim.moves) ? this.side : null);
  }

  claimLine(claim) {
    const verdict = el('span', { class: `verdict ${claim.verdict.replaceAll(' ', '-')}` }, claim.verdict);
    const figures = [claim.stated === '-' ? 'follows from the lecture' : `stated: ${claim.stated}`, claim.recomputed === '-' ? '' : `recomputed: ${claim.recomputed}`];
    return el('li', { 'data-claim': claim.id }, el('a', { href: links.claim(claim.id), class: 'claim' }, el('span', { class: 'id' }, claim.id), claim.says),
      el('p', { class: 'quiet' }, figures.filter(Boolean).join(' · '), ' ', verdict, claim.cause ? ` (${claim.cause})` : ''));
  }

  // What a section draws is asked for when it comes near the window.
  watch() {
    if (!this.section.stage) return;
    this.watcher = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) this.open(); }, { rootMargin: '300px' });
    this.watcher.observe(this.node);
  }

  leave() { this.watcher?.disconnect(); this.stopDrawing?.(); this.chart.clear(); }

  async open() {
    if (this.opened) return;
    this.opened = true;
    this.watcher?.disconnect();
    const { stage } = this.section;
    if (stage.drawing) this.stopDrawing = await drawing(this.moving, stage.drawing);
    if (stage.claim) await this.openClaim(await board('claim', { id: stage.claim, ...(stage.axis ? { axis: stage.axis } : {}) }));
    else if (stage.verb) await this.openVerb(stage);
  }

  async openVerb(stage) {
    this.base = { verb: stage.verb, words: stage.words, flags: { ...stage.flags } };
    this.begin(stage);
    const sliders = Object.entries(stage.sliders ?? {}).map(([name, stops]) => this.slider(stage.labels[name], stops, Math.max(0, stops.findIndex((stop) => stop.word === stage.flags[name])), (word) => { this.base.flags[name] = word; }));
    replace(this.controls, sliders, this.alone ? el('p', { class: 'quiet alone' }, this.alone) : null);
    await this.settle();
  }

  async openClaim(claim) {
    this.opened = true;
    this.claim = claim;
    for (const item of this.list.children) item.classList.toggle('open', item.dataset.claim === claim.id);
    this.axis = claim.axis;
    this.words = {};
    this.subjects = claim.subjects ?? [];
    const moving = claim.inputs.filter((input) => input.stops.length);
    const along = moving.find((input) => input.name === claim.axis);
    this.base = null;
    replace(this.detail, this.claimDetail(claim));
    this.parts.show(keyOf(this.lectures()), this.detail);
    if (!along) {
      this.asked += 1;
      replace(this.controls);
      replace(this.numbers);
      this.chart.clear();
      this.chart.node.hidden = true;
      this.status.textContent = '';
      replace(this.command, commandLine(claim.command));
      this.parts.show(this.parts.key, this.command, this.status);
      return;
    }
    this.chart.node.hidden = false;
    this.axis = along.name;
    this.begin(claim);
    const id = unique('axis');
    const choice = el('select', { id }, moving.map((input) => el('option', { value: input.name }, input.label)));
    choice.value = along.name;
    choice.addEventListener('change', async () => {
      this.axis = choice.value;
      this.remember();
      await this.openClaim(await board('claim', { id: claim.id, axis: choice.value, with: this.changes() }));
    });
    for (const input of claim.inputs) if (input.word && input !== along) this.words[input.name] = input.word;
    const related = claim.related.map((name) => moving.find((input) => input.name === name));
    const sliders = related.map((input) => this.slider(input.label, input.stops, input.at, (moved, isHome) => { if (isHome) delete this.words[input.name]; else this.words[input.name] = moved; }, input.source));
    replace(this.controls, claim.isStored ? null : el('div', { class: 'field' }, el('label', { for: id }, 'Along'), choice), sliders, this.alone ? el('p', { class: 'quiet alone' }, this.alone) : null);
    this.span = `${along.name}=${along.span}`;
    await this.settle();
  }

  // Of answers made ahead, those of one slider at a time: the others go back.
  begin({ alone }) {
    this.alone = alone; // the sentence that says so
    this.backs = [];
  }

  // moved(word, isHome): another word of its input, or back where it stood
  slider(title, stops, at, moved, source) {
    const id = unique('slider');
    const shown = el('output', { for: id }, stops[at].text);
    const range = el('input', { type: 'range', id, min: 0, max: stops.length - 1, step: 1, value: String(at), 'aria-valuetext': stops[at].text });
    range.value = String(at);
    const tell = () => {
      const { text } = stops[range.valueAsNumber];
      shown.textContent = text;
      range.setAttribute('aria-valuetext', text);
    };
    const back = () => { range.value = String(at); tell(); moved(stops[at].word, true); };
    this.backs.push(back);
    range.addEventListener('input', () => {
      tell();
      if (this.alone) for (const other of this.backs) if (other !== back) other();
      moved(stops[range.valueAsNumber].word);
      this.parts.look();
      const question = { ...this.question(this.width), parts: ['pictures'] };
      this.pump.push({ of: this.parts.key, question });
    });
    range.addEventListener('change', () => { this.remember(); this.settle(); });
    return el('div', { class: 'field slide' }, el('label', { for: id, title: source }, title), shown, range);
  }

  question(width = widthOf(this.side)) {
    if (this.base) return { ...this.base, width };
    return { verb: 'lecture', words: [this.claim.id], flags: { with: [this.span, ...this.changes()] }, width };
  }

  changes() { return [...this.subjects, ...Object.entries(this.words).map(([name, word]) => `${name}=${word}`)]; }

  // What decides the answer; the axis is none of the lecture's inputs.
  inputs() { return this.base ? this.base.flags : { claim: this.claim?.id, with: this.changes() }; }

  lectures() { return { claim: this.claim.id, with: this.subjects }; }

  // The claim itself, with the inputs that were moved.
  sentence() {
    const changes = this.changes();
    return { verb: 'lecture', words: [this.claim.id], flags: changes.length ? { with: changes } : {} };
  }

  remember() {
    if (this.base) return;
    const query = new URLSearchParams([['claim', this.claim.id], ['axis', this.axis], ...this.changes().map((text) => ['with', text])]);
    this.pushed(`/blackboard?${query}`);
  }

  async move({ of, question }) {
    const before = this.asked;
    const answer = await ask({ ...question, picture: this.chart.picture?.name ?? '', ...this.chart.still });
    if (before !== this.asked) return; // released meanwhile
    await this.draw(of, answer);
  }

  async draw(of, answer) {
    for (const picture of answer.pictures.slice(0, 1)) await this.chart.show(picture);
    this.parts.show(of, this.chart.node);
  }

  async settle() {
    this.asked += 1;
    const mine = this.asked;
    const of = this.parts.key;
    this.parts.look();
    try {
      const question = this.question();
      this.width = question.width; // while a slider moves too: to measure is to lay out
      const sentence = this.base ? null : await ask({ ...this.sentence(), parts: ['answer'] });
      const curve = ask({ ...question, parts: ['answer', 'pictures', 'table'] });
      const answer = await (sentence ? curve.catch((error) => ({ undrawn: true, pictures: [], without: error.message })) : curve);
      if (mine !== this.asked) return;
      const said = sentence ?? answer;
      if (answer.without) replace(this.numbers, el('p', { class: 'quiet' }, `No curve here: ${answer.without}`));
      else replace(this.numbers, answer.undrawn ? null : folded(answer.table, answer.pictures[0]?.title ?? answer.command));
      this.status.textContent = said.answer;
      replace(this.command, commandLine(said.command), this.base || answer.without ? null : commandLine(answer.command, 'and its curve'));
      this.parts.show(of, this.numbers, this.status, this.command);
      await this.draw(of, answer);
      if (answer.undrawn) this.chart.clear();
    } catch (error) { if (mine === this.asked) this.say(error, of); }
  }

  say(error, of) {
    this.status.textContent = error.message;
    this.parts.show(of, this.status);
  }

  redraw() { if (this.opened && (this.base || this.span)) this.settle(); }

  claimDetail(claim) {
    const asked = () => ({ verb: 'lecture', words: [claim.id], flags: {} });
    return el('section', { 'aria-label': `Claim ${claim.id}` },
      el('p', { class: 'equation' }, claim.equation),
      el('dl', {}, el('dt', {}, 'The lecture says'), el('dd', {}, claim.stated), el('dt', {}, 'Recomputed'),
        el('dd', {}, !claim.explains ? claim.recomputed : number(claim.recomputed, { row: 0, key: 'recomputed' }, asked, false)),
        el('dt', {}, 'Verdict'), el('dd', {}, claim.verdict, claim.cause ? ` (${claim.cause})` : '')),
      claim.note ? el('p', {}, claim.note) : null,
      claim.laws.length ? el('details', {}, el('summary', {}, 'The laws behind it'), el('pre', { tabindex: 0 }, claim.laws.join('\n'))) : null,
      claim.inputs.length ? el('details', {}, el('summary', {}, 'Inputs and where they are from'), wide(`Inputs of ${claim.id}`,
        table(INPUTS, claim.inputs.map(({ label, text, source }) => [{ text: label }, { text }, { text: source }])))) : null);
  }
}

// The card of one's own model: the lecture's quantities for a model on a machine.
class Card {
  constructor() {
    this.body = el('div');
    this.model = el('input', { id: unique('model'), type: 'text', list: 'models', value: 'deepseek-v3', spellcheck: 'false' });
    this.machine = el('input', { id: unique('machine'), type: 'text', list: 'machines', value: 'gb200-nvl72', spellcheck: 'false' });
    const form = el('form', { class: 'row', 'aria-label': 'Your model and machine' }, el('div', { class: 'field' }, el('label', { for: this.model.id }, 'Your model'), this.model),
      el('div', { class: 'field' }, el('label', { for: this.machine.id }, 'Your machine'), this.machine), el('button', { type: 'submit' }, 'Show its card'));
    form.addEventListener('submit', (event) => { event.preventDefault(); this.show(); });
    this.parts = new Parts(() => [this.model.value.trim(), this.machine.value.trim()]);
    form.addEventListener('input', () => this.parts.look());
    this.asked = 0;
    this.node = el('section', { class: 'card' }, el('h2', {}, 'The card of your own model'), el('p', {}, 'The lecture’s quantities, for a model and a machine of yours.'), form, this.body);
  }

  async show() {
    const question = { verb: 'lecture', words: [], flags: { model: this.model.value.trim(), on: this.machine.value.trim() }, parts: ['answer', 'table'] };
    const of = this.parts.key;
    this.asked += 1;
    const mine = this.asked;
    this.parts.look();
    try {
      const answer = await ask(question);
      if (mine !== this.asked) return;
      const { columns, rows } = answer.table;
      replace(this.body, el('p', { class: 'says', role: 'status' }, answer.answer), wide('Card', table(columns, rows,
        (cell) => (cell.key ? number(cell.text, { row: cell.row, key: cell.key }, () => question, false) : cell.text))),
      commandLine(answer.command));
    } catch (error) {
      if (mine !== this.asked) return;
      replace(this.body, el('p', { class: 'fault', role: 'status' }, error.message));
    }
    this.parts.show(of, this.body);
  }
}

// Flashcards of a chapter: the server deals and marks them.
class Cards {
  constructor(chapter) {
    this.chapter = chapter;
    this.at = 0;
    this.body = el('div');
    const start = el('button', { type: 'button', onclick: () => this.deal() }, 'Deal cards');
    this.node = el('section', { class: 'card' }, el('h2', {}, 'Flashcards'), el('p', {}, 'A number with its unit; rises, falls or stays; or a sentence that you judge yourself.'), start, this.body);
  }

  async deal() {
    this.seed = crypto.getRandomValues(new Uint32Array(1))[0] % 1000000;
    this.cards = await board('cards', { chapter: this.chapter, seed: this.seed });
    this.at = 0;
    this.ask();
  }

  ask() {
    const card = this.cards[this.at];
    if (!card) { replace(this.body, el('p', {}, 'That was the last one.')); return; }
    const id = unique('guess');
    const guess = el('input', { id, type: 'text', autocomplete: 'off' });
    const mark = el('div', { role: 'status' });
    const parts = new Parts(() => guess.value);
    guess.addEventListener('input', () => parts.look());
    const form = el('form', { class: 'row', 'aria-label': 'Flashcard' }, el('div', { class: 'field' }, el('label', { for: id }, card.question), guess), el('button', { type: 'submit' }, 'Answer'));
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const of = parts.key;
      try {
        const grade = await board('grade', { chapter: this.chapter, seed: this.seed, card: this.at, text: guess.value });
        parts.show(of, mark);
        if (grade.unread) { replace(mark, el('p', { class: 'fault' }, grade.unread)); return; }
        const verdict = grade.right === null ? 'The answer' : grade.right ? 'Right' : 'Not quite';
        const next = el('button', { type: 'button', onclick: () => { this.at += 1; this.ask(); } }, 'Next card');
        replace(mark, el('p', {}, el('b', {}, `${verdict}: `), grade.answer), el('p', { class: 'quiet' }, `${grade.claim}: ${grade.says}`),
          grade.laws.length ? el('pre', { tabindex: 0 }, grade.laws.join('\n')) : null, next);
      } catch (error) { replace(mark, el('p', { class: 'fault' }, error.message)); }
    });
    const inputs = card.inputs.length ? el('p', { class: 'quiet' }, card.inputs.join(' · ')) : null;
    replace(this.body, el('p', { class: 'quiet' }, `Card ${this.at + 1} of ${this.cards.length}`), inputs, form, mark);
    guess.focus();
  }
}
