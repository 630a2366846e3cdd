// Pictures: the server makes the specification, the page draws it and swaps its rows while a slider moves.
import { el, replace, tell } from './dom.js';

const OPTIONS = { mode: 'vega-lite', ast: true, actions: false, defaultStyle: false, tooltip: () => {}, renderer: 'svg' };
export const redraws = { count: 0 };
// What draws is large, and words do not wait for it.
const library = document.querySelector('script[src$="vega.js"]');
const loaded = window.vegaEmbed ? Promise.resolve() : new Promise((resolve, reject) => {
  library.addEventListener('load', resolve);
  library.addEventListener('error', () => reject(new Error('what draws pictures could not be loaded')));
});
loaded.catch(() => {}); // told where a picture is drawn
const NEAR = 60; // px of a drawing within which a pointer reads a point

// Width to draw at: in the measure of the page's letters, so that those of a picture grow with them on large screens.
const letters = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
export const widthOf = (node) => Math.round(Math.min(1200, Math.max(320, (node.clientWidth || 760) / letters())));

// One figure: title, drawing, sentence. `show` draws anew where the structure differs, else it swaps rows. A pointer or the arrow keys go
// from point to point of it; `picked` is told what a point asks when it is clicked, or when Enter is pressed on it.
export class Chart {
  constructor(picked) {
    this.picked = picked;
    this.title = el('h3', { class: 'figure-title', hidden: true });
    this.subtitle = el('p', { class: 'figure-subtitle' });
    this.drawing = el('div', { class: 'drawing' });
    this.caption = el('figcaption');
    this.tip = el('p', { class: 'tip', role: 'status', hidden: true });
    this.rings = el('div', { class: 'rings', 'aria-hidden': 'true' });
    this.stage = el('div', { class: 'readable' }, this.drawing, this.rings, this.tip);
    this.node = el('figure', { class: 'picture' }, this.title, this.subtitle, this.stage, this.caption);
    this.listen();
    this.clear();
  }

  // One after the other: what was asked while a slider moved may come just before what was asked on its release.
  show(picture) {
    this.shown = (this.shown ?? Promise.resolve()).catch(() => {}).then(() => this.draw(picture));
    return this.shown;
  }

  async draw(picture) {
    this.picture = picture;
    if (!(await this.swap(picture))) {
      this.spec = picture.spec ?? this.spec;
      const spec = { ...this.spec, datasets: picture.data };
      const holder = el('div');
      await loaded;
      const result = await window.vegaEmbed(holder, spec, OPTIONS);
      holder.querySelector('.vega-bindings')?.remove(); // an empty form
      holder.querySelector('svg').setAttribute('aria-hidden', 'true'); // the drawing's own words stand for it: its marks have none
      this.view?.finalize();
      this.view = result.view;
      this.shape = picture.shape;
      this.rows = new Map(Object.entries(picture.data).map(([name, rows]) => [name, JSON.stringify(rows)]));
      replace(this.drawing, holder);
    }
    for (const part of ['title', 'subtitle', 'caption']) tell(this[part], picture[part]);
    this.title.hidden = !picture.title;
    this.leave();
    this.gathered = null;
    const keys = Object.entries(picture.data).some(([name, rows]) => name.endsWith('_tips') && rows.length);
    const told = { role: 'img', 'aria-label': `${picture.alt}${keys ? ' Arrow keys go from point to point.' : ''}` };
    for (const [name, value] of Object.entries(told)) if (this.drawing.getAttribute(name) !== value) this.drawing.setAttribute(name, value);
    if (keys) this.drawing.setAttribute('tabindex', '0'); else this.drawing.removeAttribute('tabindex');
    redraws.count += 1;
  }

  // -- points --

  // Where the points of the picture stand in px of its drawing, and what is said of each: the rows that the server made of them.
  // They are gathered when one is first looked for, since to measure them is to lay out the page.
  get points() { return this.gathered ??= this.view ? this.gather() : []; }

  gather() {
    const points = [];
    const svg = this.drawing.querySelector('svg').getBoundingClientRect();
    const walk = (mark) => {
      for (const item of mark.items ?? []) {
        if (mark.marktype === 'group') item.items.forEach(walk);
        else if (mark.name?.endsWith('_tips_marks')) {
          const { downs, tip, pick, name } = item.datum;
          const box = item._svg.getBoundingClientRect(); // where the panel stands in the drawing, only the drawing knows
          const [x, y] = [(box.left + box.width / 2 - svg.left) / this.scale, (box.top + box.height / 2 - svg.top) / this.scale];
          points.push({ x, downs: downs.map((down) => y + down - downs[0]), tip, pick, name });
        }
      }
    };
    walk(this.view.scenegraph().root);
    return points;
  }

  listen() {
    this.drawing.addEventListener('pointermove', (event) => this.touch(event));
    this.drawing.addEventListener('pointerdown', (event) => this.touch(event));
    this.drawing.addEventListener('pointerleave', () => { if (document.activeElement !== this.drawing) this.leave(); });
    this.drawing.addEventListener('click', () => this.pick());
    this.drawing.addEventListener('blur', () => this.leave());
    this.drawing.addEventListener('keydown', (event) => {
      const last = this.points.length - 1;
      const here = this.at ?? -1;
      const place = { ArrowRight: Math.min(here + 1, last), ArrowLeft: Math.max(here - 1, 0), Home: 0, End: last }[event.key];
      if (place !== undefined && last >= 0) this.read(place);
      else if (event.key === 'Enter') this.pick();
      else if (event.key === 'Escape' && this.at !== null) { this.leave(); event.stopPropagation(); } else return;
      event.preventDefault();
    });
  }

  // Px on the page of one px of the drawing, which is as wide as the page lets it be.
  get scale() {
    const svg = this.drawing.querySelector('svg');
    return svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  }

  touch(event) {
    const svg = this.drawing.querySelector('svg');
    if (!svg || !this.points.length) return;
    const box = svg.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / this.scale, (event.clientY - box.top) / this.scale];
    const away = (point) => Math.hypot(point.x - x, Math.min(...point.downs.map((down) => Math.abs(down - y))) / (point.downs.length > 1 ? 4 : 1));
    let best = 0;
    this.points.forEach((point, place) => { if (away(point) < away(this.points[best])) best = place; });
    if (away(this.points[best]) < NEAR) this.read(best); else this.leave();
  }

  read(place) {
    const point = this.points[place];
    this.at = place;
    this.light(point.name);
    const offset = this.drawing.querySelector('svg').getBoundingClientRect().left - this.stage.getBoundingClientRect().left;
    replace(this.rings, point.downs.map((down) => {
      const ring = el('span');
      ring.style.left = `${offset + point.x * this.scale}px`;
      ring.style.top = `${down * this.scale}px`;
      return ring;
    }));
    this.tip.textContent = point.tip + (point.pick && this.picked ? ' · click or Enter asks this' : '');
    this.tip.hidden = false;
    const wide = this.stage.clientWidth;
    this.tip.style.left = `${Math.max(0, Math.min(offset + point.x * this.scale - this.tip.offsetWidth / 2, wide - this.tip.offsetWidth))}px`;
    const top = Math.min(...point.downs) * this.scale;
    this.tip.style.top = `${top > this.tip.offsetHeight + 16 ? top - this.tip.offsetHeight - 12 : Math.max(...point.downs) * this.scale + 14}px`;
    this.drawing.classList.toggle('pickable', Boolean(point.pick && this.picked));
  }

  // All that has a name stands out while a point of it is read; a name that nothing has lets all be as it was.
  light(name = '') {
    if (!this.view || !this.spec.params || name === this.view.signal('lit')) return;
    this.view.signal('lit', name).runAsync();
  }

  leave() {
    this.at = null;
    this.light();
    this.tip.hidden = true;
    replace(this.rings);
    this.drawing.classList.remove('pickable');
  }

  pick() {
    const point = this.points[this.at];
    if (point?.pick && this.picked) this.picked(point.pick);
  }

  // Whether new rows were enough: the structure is the same, and the drawing knows every set of rows. Sets that stand already are left alone.
  async swap(picture) {
    if (!this.view || picture.shape !== this.shape) return false;
    try {
      for (const [name, rows] of Object.entries(picture.data)) {
        const text = JSON.stringify(rows);
        if (text === this.rows.get(name)) continue;
        this.view.data(name, rows);
        this.rows.set(name, text);
      }
    } catch { return false; }
    await this.view.runAsync();
    return true;
  }

  // What stays while a slider moves: the ends of its axes, and what is drawn already.
  get still() { return { axes: this.picture?.axes ?? {}, shape: this.shape ?? '' }; }

  clear() {
    this.leave();
    this.gathered = null;
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
