// Three drawings that move. Their numbers come from the server; here they only become positions on the paper.
import { ask } from './ask.js';
import { el, replace, unique } from './dom.js';
import { Parts } from './fresh.js';

const NS = 'http://www.w3.org/2000/svg';
const svg = (tag, attributes = {}, ...children) => {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const still = () => window.matchMedia('(prefers-reduced-motion: reduce)').matches;
const WIDE = 640;

// A drawing in `parent`: controls, frame and clock; the answer stops it.
export async function drawing(parent, name) {
  const asked = { name };
  let frame = 0;
  let clock = null;
  let playing = !still();
  const paper = svg('svg', { viewBox: `0 0 ${WIDE} 220`, role: 'img', class: 'moving-paper' });
  const play = el('button', { type: 'button', class: 'play' }, playing ? 'Pause' : 'Play');
  const facts = el('p', { class: 'quiet facts' });
  const title = el('h3', { class: 'figure-title' });
  const controls = el('form', { class: 'sliders', 'aria-label': 'Inputs of the drawing' });
  controls.addEventListener('submit', (event) => event.preventDefault());
  const figure = el('figure', { class: 'picture' }, title, paper, el('figcaption', {}, facts));
  const parts = new Parts(() => asked);
  replace(parent, figure, controls, play);
  let painted = null;
  let last = null;
  let seconds = 0;

  async function load() {
    const of = parts.key;
    const numbers = await ask({ kind: 'drawing', ...asked });
    if (of !== parts.key) return numbers; // moved meanwhile
    title.textContent = numbers.title;
    facts.textContent = numbers.facts.map((fact) => `${fact.name}: ${fact.text}`).join(' · ');
    paper.setAttribute('aria-label', `${numbers.title}. ${facts.textContent}`);
    painted = PAINTERS[name](paper, numbers);
    painted(playing ? seconds : painted.end ?? 6);
    parts.show(of, figure);
    return numbers;
  }

  const numbers = await load();
  replace(controls, numbers.controls.map((control) => {
    const id = unique(control.name);
    const shown = el('output', { for: id }, String(control.value));
    const range = el('input', { type: 'range', id, min: control.low, max: control.high, step: control.step });
    range.value = String(control.value);
    range.addEventListener('input', () => { shown.textContent = range.value; asked[control.name] = range.valueAsNumber; parts.look(); clearTimeout(clock); clock = setTimeout(load, 60); });
    return el('div', { class: 'field slide' }, el('label', { for: id }, control.label), shown, range);
  }));

  function tick(now) {
    if (playing && last !== null) seconds += Math.min(0.1, (now - last) / 1000);
    last = now;
    if (playing && paper.isConnected) painted(seconds);
    frame = requestAnimationFrame(tick);
  }
  play.addEventListener('click', () => { playing = !playing; play.textContent = playing ? 'Pause' : 'Play'; });
  frame = requestAnimationFrame(tick);
  return () => cancelAnimationFrame(frame);
}

const SLOWED = 100; // one second on the paper is this many times slower than the machine
const PAINTERS = { trains, stages, activations };

function trains(paper, numbers) {
  paper.setAttribute('viewBox', `0 0 ${WIDE} 190`);
  const { period_s: period, seats } = numbers;
  const end = numbers.trains.length * period;
  const label = svg('text', { x: 12, y: 22, class: 'paper-text' });
  const platform = svg('line', { x1: 0, x2: WIDE, y1: 92, y2: 92, class: 'rail' });
  const track = svg('line', { x1: 0, x2: WIDE, y1: 152, y2: 152, class: 'rail' });
  const dots = numbers.requests.map(() => svg('circle', { r: 5, class: 'rider' }));
  const cars = numbers.trains.map((train) => {
    const boxes = Array.from({ length: seats }, (_, seat) => svg('rect', { x: seat * 17, y: 0, width: 14, height: 14, rx: 2, class: 'seat' }));
    return svg('g', {}, svg('rect', { x: -6, y: -7, width: seats * 17 + 9, height: 28, rx: 6, class: 'car' }), ...boxes);
  });
  paper.replaceChildren(label, platform, track, ...cars, ...dots);
  const first = numbers.trains.map((_, place) => numbers.requests.findIndex((request) => request.train === place));
  return (seconds) => {
    const now = (seconds / SLOWED) % end;
    let waiting = 0;
    const carAt = (place) => 30 + Math.max(0, now - numbers.trains[place].departs_s) / period * (WIDE - 120);
    numbers.trains.forEach((train, place) => {
      const there = train.departs_s - period <= now && now < train.departs_s + period;
      cars[place].setAttribute('visibility', there ? 'visible' : 'hidden');
      if (there) cars[place].setAttribute('transform', `translate(${carAt(place)} 129)`);
    });
    numbers.requests.forEach((request, place) => {
      const train = numbers.trains[request.train];
      const gone = now >= train.departs_s;
      const seen = request.arrives_s <= now && now < train.departs_s + period;
      dots[place].setAttribute('visibility', seen ? 'visible' : 'hidden');
      if (!seen) return;
      const seat = place - first[request.train];
      if (gone) { dots[place].setAttribute('cx', carAt(request.train) + seat * 17 + 7); dots[place].setAttribute('cy', 136); } else {
        dots[place].setAttribute('cx', 24 + (waiting % 40) * 15);
        dots[place].setAttribute('cy', 78 - Math.floor(waiting / 40) * 14);
        waiting += 1;
      }
    });
    label.textContent = `${waiting} ${waiting === 1 ? 'request waits' : 'requests wait'} for the next train`;
  };
}

function stages(paper, numbers) {
  const row = 30;
  const high = numbers.stages * row + 34;
  paper.setAttribute('viewBox', `0 0 ${WIDE} ${high}`);
  const scale = (WIDE - 74) / numbers.end;
  const names = Array.from({ length: numbers.stages }, (_, stage) => svg('text', { x: 0, y: stage * row + 20, class: 'paper-text' }, `stage ${stage + 1}`));
  const blocks = numbers.blocks.map((block) => svg('g', {},
    svg('rect', { x: 70 + block.start * scale, y: block.stage * row + 3, width: Math.max(1, (block.end - block.start) * scale - 1), height: row - 6, rx: 2, class: block.back ? 'back' : 'forth' }),
    ...((block.end - block.start) * scale > 15 ? [svg('text', { x: 70 + (block.start + block.end) / 2 * scale, y: block.stage * row + 19, class: 'block-text' }, String(block.micro_batch + 1))] : [])));
  const cursor = svg('line', { y1: 0, y2: high - 30, class: 'cursor' });
  const key = svg('text', { x: 70, y: high - 8, class: 'paper-text' }, 'forward: blue · backward: brown · time runs to the right');
  paper.replaceChildren(...names, ...blocks, cursor, key);
  const paint = (seconds) => {
    const now = (seconds * 3) % (numbers.end + 3);
    numbers.blocks.forEach((block, place) => blocks[place].setAttribute('opacity', block.start <= now ? 1 : 0.12));
    cursor.setAttribute('x1', 70 + Math.min(now, numbers.end) * scale);
    cursor.setAttribute('x2', 70 + Math.min(now, numbers.end) * scale);
  };
  paint.end = (numbers.end + 1) / 3;
  return paint;
}

function activations(paper, numbers) {
  paper.setAttribute('viewBox', `0 0 ${WIDE} 200`);
  const wide = Math.min(56, (WIDE - 10) / numbers.layers);
  const layers = Array.from({ length: numbers.layers }, (_, place) => svg('rect', { x: 4 + place * wide, y: 30, width: wide - 6, height: 46, rx: 4, class: 'layer' }));
  const label = svg('text', { x: 4, y: 18, class: 'paper-text' });
  const bars = ['ordinary', 'reversible'].map((kind, place) => [
    svg('text', { x: 4, y: 112 + place * 44, class: 'paper-text' }), svg('rect', { x: 4, y: 118 + place * 44, width: WIDE - 8, height: 14, rx: 2, class: 'trough' }),
    svg('rect', { x: 4, y: 118 + place * 44, width: 1, height: 14, rx: 2, class: `fill ${kind}` })]);
  paper.replaceChildren(label, ...layers, ...bars.flat());
  const paint = (seconds) => {
    const step = numbers.steps[Math.floor(seconds * 2) % numbers.steps.length];
    layers.forEach((layer, place) => layer.setAttribute('class', `layer${place < step.kept ? ' kept' : ''}${place === step.layer ? (step.back ? ' backward' : ' forward') : ''}`));
    label.textContent = step.back ? `back through layer ${step.layer + 1}: its activations are used and dropped; a reversible layer makes them again` : `forward through layer ${step.layer + 1}: its activations are kept`;
    ['ordinary', 'reversible'].forEach((kind, place) => {
      bars[place][0].textContent = `${kind}: ${step.text[kind]}`;
      bars[place][2].setAttribute('width', Math.max(2, step[kind] / numbers.most * (WIDE - 8)));
    });
  };
  paint.end = numbers.layers / 2;
  return paint;
}
