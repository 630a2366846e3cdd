// The first page: four questions, and a line for any command.
import { board } from './ask.js';
import { el, replace, unique } from './dom.js';

export class Start {
  // questions: as the pages' file has them; go(address) opens a page
  constructor(questions, go) {
    this.go = go;
    this.node = el('div', { class: 'start' }, el('div', { class: 'doors' }, questions.map((question) => this.door(question))), this.line());
  }

  door(question) {
    const inputs = question.fields.map(([name, label, value, list, none]) => {
      const id = unique(name);
      return { name, input: el('input', { id, type: 'text', value, list: list || null, placeholder: none ?? null, spellcheck: 'false', autocapitalize: 'off' }), label: el('label', { for: id }, label) };
    });
    const form = el('form', { class: 'door controls', autocomplete: 'off' }, el('h2', {}, question.title), el('p', {}, question.says),
      inputs.map(({ input, label }) => el('div', { class: 'field' }, label, input)), el('button', { type: 'submit', class: 'begin' }, question.button));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const query = new URLSearchParams(question.view ? [['v', '1'], ['view', question.view]] : []);
      for (const { name, input } of inputs) if (input.value.trim()) query.append(name, input.value.trim());
      if (inputs.length) for (const [name, value] of Object.entries(question.flags)) query.append(name, value);
      this.go(`/${question.page}${[...query].length ? `?${query}` : ''}`);
    });
    return form;
  }

  line() {
    const id = unique('command');
    const input = el('input', { id, type: 'text', spellcheck: 'false', autocapitalize: 'off', placeholder: 'headway serve deepseek-v3 --on gb200-nvl72 --batch 64', 'aria-describedby': `${id}-fault` });
    const fault = el('p', { class: 'quiet', id: `${id}-fault`, role: 'status' }, 'A command opens as its page; one without a page says why.');
    const form = el('form', { class: 'line', autocomplete: 'off' }, el('label', { for: id }, 'Or type a command'), el('div', { class: 'typed' }, input, el('button', { type: 'submit' }, 'Open')), fault);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      try { this.go((await board('open', { command: input.value || input.placeholder })).at); } catch (error) { replace(fault, error.message); fault.classList.add('faulty'); }
    });
    return form;
  }

  show() {}

  redraw() {}
}
