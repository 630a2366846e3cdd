// Pictures: the server makes the specification, the page draws it and swaps its rows while a slider moves.
import { el, replace } from './dom.js';

const OPTIONS = { mode: 'vega-lite', ast: true, actions: false, defaultStyle: false, tooltip: () => {}, renderer: 'svg' };
export const redraws = { count: 0 };

// Width to draw at: in the measure of the page's letters, so that those of a picture grow with them on large screens.
const letters = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
export const widthOf = (node) => Math.round(Math.min(1200, Math.max(320, (node.clientWidth || 760) / letters())));

// One figure: title, drawing, sentence. `show` draws anew where the structure differs, else it swaps rows.
export class Chart {
  constructor() {
    this.title = el('h3', { class: 'figure-title' });
    this.subtitle = el('p', { class: 'figure-subtitle' });
    this.drawing = el('div', { class: 'drawing' });
    this.caption = el('figcaption');
    this.node = el('figure', { class: 'picture' }, this.title, this.subtitle, this.drawing, this.caption);
    this.shape = null;
    this.view = null;
  }

  async show(picture) {
    this.picture = picture;
    if (!(await this.swap(picture))) {
      const spec = { ...picture.spec, datasets: picture.data };
      const holder = el('div');
      const result = await window.vegaEmbed(holder, spec, OPTIONS);
      holder.querySelector('.vega-bindings')?.remove(); // an empty form
      this.view?.finalize();
      this.view = result.view;
      this.shape = picture.shape;
      replace(this.drawing, holder);
    }
    this.title.textContent = picture.title;
    this.subtitle.textContent = picture.subtitle;
    this.caption.textContent = picture.caption;
    this.drawing.setAttribute('role', 'img');
    this.drawing.setAttribute('aria-label', picture.alt);
    redraws.count += 1;
  }

  // Whether new rows were enough: the structure is the same, and the drawing knows every set of rows.
  async swap(picture) {
    if (!this.view || picture.shape !== this.shape) return false;
    try {
      for (const [name, rows] of Object.entries(picture.data)) this.view.data(name, rows);
    } catch { return false; }
    await this.view.runAsync();
    return true;
  }

  get axes() { return this.picture?.axes ?? {}; }

  clear() {
    this.view?.finalize();
    this.view = null;
    this.shape = null;
    replace(this.drawing);
    this.drawing.removeAttribute('role');
  }
}

// The PNG of a specification with resolved colours.
export async function png(picture) {
  const holder = el('div', { class: 'offstage' });
  document.body.append(holder);
  try {
    const { view } = await window.vegaEmbed(holder, { ...picture.spec, datasets: picture.data }, OPTIONS);
    const address = await view.toImageURL('png', 2);
    view.finalize();
    const [, data] = address.split(',');
    return new Blob([Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))], { type: 'image/png' });
  } finally { holder.remove(); }
}

// Newest wins, one question under way, the last is always drawn.
export class Pump {
  constructor(work, fault) { this.work = work; this.fault = fault; this.wanted = null; this.busy = false; }

  push(wanted) {
    this.wanted = wanted;
    if (!this.busy) this.turn();
  }

  async turn() {
    this.busy = true;
    try {
      while (this.wanted) {
        const wanted = this.wanted;
        this.wanted = null;
        await this.work(wanted).catch(this.fault);
      }
    } finally { this.busy = false; }
  }
}
