// Answers that a reader keeps beside the next: each with the command that it belongs to, so that none is taken for that of other inputs.
import { commandLine, el, replace } from './dom.js';

const MOST = 3;
const kept = new Map(); // by view, for as long as the page stands

export class Keep {
  constructor(view) {
    this.view = view;
    this.last = null; // the answer at rest that would be kept
    this.node = el('div', { class: 'kept-answers' });
    const button = el('button', { type: 'button' }, 'Keep this answer beside the next');
    button.addEventListener('click', () => this.set([this.last, ...this.answers.filter((answer) => answer !== this.last)].slice(0, MOST)));
    this.offer = el('p', { class: 'keep', hidden: true }, button);
    this.show();
  }

  get answers() { return kept.get(this.view) ?? []; }

  set(answers) {
    kept.set(this.view, answers);
    this.show();
  }

  show() {
    replace(this.node, this.answers.map((answer) => el('section', { class: 'kept-answer', 'aria-label': 'An answer that was kept' },
      el('p', { class: 'kept-headline' }, answer.answer), answer.whose ? el('p', { class: 'quiet' }, answer.whose) : null,
      el('dl', {}, answer.figures.flatMap((figure) => [el('dt', {}, figure.label), el('dd', {}, figure.text)])),
      commandLine(answer.command, 'Of this question'),
      el('button', { type: 'button', onclick: () => this.set(this.answers.filter((other) => other !== answer)) }, 'Let it go'))));
  }
}
