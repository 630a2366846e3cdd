// Drawings, of which some move. Their numbers come from the server; here they only become positions on the paper.
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
const [WIDEST, NARROW] = [640, 440]; // px, with letters of their own size

// A drawing in `parent`: controls, frame and clock; the answer stops it.
export async function drawing(parent, name) {
  const asked = { name };
  let frame = 0;
  let clock = null;
  let playing = !still();
  const paper = svg('svg', { viewBox: `0 0 ${WIDEST} 220`, role: 'img', class: 'moving-paper' });
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
    const wide = Math.round(Math.min(WIDEST, Math.max(300, parent.clientWidth || WIDEST)));
    painted = PAINTERS[name](paper, numbers, wide);
    play.hidden = !painted; // it stands still
    painted?.(playing ? seconds : painted.end ?? 6);
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
    if (playing && paper.isConnected) painted?.(seconds);
    frame = requestAnimationFrame(tick);
  }
  play.addEventListener('click', () => { playing = !playing; play.textContent = playing ? 'Pause' : 'Play'; });
  frame = requestAnimationFrame(tick);
  return () => cancelAnimationFrame(frame);
}

const SLOWED = 100; // one second on the paper is this many times slower than the machine
const PAINTERS = { trains, stages, activations, experts, memory, avalanche };

function trains(paper, numbers, wide) {
  paper.setAttribute('viewBox', `0 0 ${wide} 190`);
  const { period_s: period, seats } = numbers;
  const end = numbers.trains.length * period;
  const row = Math.floor((wide - 40) / 15); // of requests that wait
  const label = svg('text', { x: 12, y: 22, class: 'paper-text' });
  const platform = svg('line', { x1: 0, x2: wide, y1: 92, y2: 92, class: 'rail' });
  const track = svg('line', { x1: 0, x2: wide, y1: 152, y2: 152, class: 'rail' });
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
    const carAt = (place) => 30 + Math.max(0, now - numbers.trains[place].departs_s) / period * (wide - 120);
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
        dots[place].setAttribute('cx', 24 + (waiting % row) * 15);
        dots[place].setAttribute('cy', 78 - Math.floor(waiting / row) * 14);
        waiting += 1;
      }
    });
    label.textContent = `${waiting} ${waiting === 1 ? 'request waits' : 'requests wait'} for the next train`;
  };
}

function stages(paper, numbers, wide) {
  const row = 30;
  const high = numbers.stages * row + 34;
  paper.setAttribute('viewBox', `0 0 ${wide} ${high}`);
  const scale = (wide - 74) / numbers.end;
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

function activations(paper, numbers, wide) {
  paper.setAttribute('viewBox', `0 0 ${wide} 200`);
  const each = Math.min(56, (wide - 10) / numbers.layers);
  const layers = Array.from({ length: numbers.layers }, (_, place) => svg('rect', { x: 4 + place * each, y: 30, width: each - 6, height: 46, rx: 4, class: 'layer' }));
  const label = svg('text', { x: 4, y: 18, class: 'paper-text' });
  const bars = ['ordinary', 'reversible'].map((kind, place) => [
    svg('text', { x: 4, y: 112 + place * 44, class: 'paper-text' }), svg('rect', { x: 4, y: 118 + place * 44, width: wide - 8, height: 14, rx: 2, class: 'trough' }),
    svg('rect', { x: 4, y: 118 + place * 44, width: 1, height: 14, rx: 2, class: `fill ${kind}` })]);
  paper.replaceChildren(label, ...layers, ...bars.flat());
  const paint = (seconds) => {
    const step = numbers.steps[Math.floor(seconds * 2) % numbers.steps.length];
    layers.forEach((layer, place) => layer.setAttribute('class', `layer${place < step.kept ? ' kept' : ''}${place === step.layer ? (step.back ? ' backward' : ' forward') : ''}`));
    label.textContent = step.back ? `back through layer ${step.layer + 1}: its activations are used and dropped; a reversible layer makes them again` : `forward through layer ${step.layer + 1}: its activations are kept`;
    ['ordinary', 'reversible'].forEach((kind, place) => {
      bars[place][0].textContent = `${kind}: ${step.text[kind]}`;
      bars[place][2].setAttribute('width', Math.max(2, step[kind] / numbers.most * (wide - 8)));
    });
  };
  paint.end = numbers.layers / 2;
  return paint;
}

// A token of the first rack and its experts: what stays inside travels fast, what leaves travels slowly.
function experts(paper, numbers, wide) {
  const across = Math.ceil(Math.sqrt(numbers.chips));
  const columns = wide < NARROW ? Math.min(2, numbers.racks) : numbers.racks;
  const gap = 26;
  const side = Math.min((wide - gap * (columns + 1)) / columns, 150);
  const step = side / across;
  const high = side + 34;
  paper.setAttribute('viewBox', `0 0 ${wide} ${Math.ceil(numbers.racks / columns) * high + 72}`);
  const corner = (rack) => [gap + (rack % columns) * (side + gap), 28 + Math.floor(rack / columns) * high];
  const centre = (rack, chip) => [corner(rack)[0] + (chip % across + 0.5) * step, corner(rack)[1] + (Math.floor(chip / across) + 0.5) * step];
  const holds = new Set(numbers.links.map((link) => `${link.rack} ${link.chip}`));
  const racks = Array.from({ length: numbers.racks }, (_, rack) => {
    const [x, y] = corner(rack);
    const chips = Array.from({ length: numbers.chips }, (_, chip) => {
      const [middle, down] = centre(rack, chip);
      return svg('rect', { x: middle - step * 0.36, y: down - step * 0.36, width: step * 0.72, height: step * 0.72, rx: 1.5, class: holds.has(`${rack} ${chip}`) ? 'chip holds' : 'chip' });
    });
    return svg('g', {}, svg('rect', { x: x - 5, y: y - 5, width: side + 10, height: side + 10, rx: 6, class: 'car' }), ...chips,
      svg('text', { x: x - 4, y: y - 11, class: 'paper-text' }, numbers.racks > 1 ? `rack ${rack + 1}` : 'one rack'));
  });
  const home = centre(0, numbers.home);
  const ends = numbers.links.map((link) => centre(link.rack, link.chip));
  const lines = numbers.links.map((link, place) => svg('line', { x1: home[0], y1: home[1], x2: ends[place][0], y2: ends[place][1], class: link.crosses ? 'way between' : 'way' }));
  const dots = numbers.links.map((link) => svg('circle', { r: 4.5, class: link.crosses ? 'token between' : 'token' }));
  const foot = Math.ceil(numbers.racks / columns) * high + 18;
  const words = Object.entries(numbers.texts).map(([where, text], place) => svg('g', {},
    svg('line', { x1: 12, x2: 28, y1: foot + place * 18 - 4, y2: foot + place * 18 - 4, class: `way ${where}` }),
    svg('text', { x: 34, y: foot + place * 18, class: 'paper-text' }, text)));
  const last = foot + words.length * 18;
  words.push(svg('rect', { x: 14, y: last - 10, width: 12, height: 12, class: 'chip holds' }), svg('text', { x: 34, y: last, class: 'paper-text' }, numbers.legend));
  paper.replaceChildren(...racks, ...lines, svg('circle', { cx: home[0], cy: home[1], r: 6, class: 'rider' }), ...dots, ...words);
  const { inside, between } = numbers.seconds;
  const paint = (seconds) => {
    const now = (seconds * 0.7) % (Math.max(inside, between) + 0.8); // in exchanges of one rack
    numbers.links.forEach((link, place) => {
      const share = Math.min(1, now / Math.max(link.crosses ? between : inside, 0.01));
      dots[place].setAttribute('cx', home[0] + (ends[place][0] - home[0]) * share);
      dots[place].setAttribute('cy', home[1] + (ends[place][1] - home[1]) * share);
    });
  };
  paint.end = Math.max(inside, between) / 2;
  return paint;
}

// A bar for a chip of each stage, as high as what it holds; dashed, what it would hold without stages.
function memory(paper, numbers, wide) {
  const high = 170;
  const step = (wide - 20) / numbers.stages;
  const scale = (high - 20) / numbers.most;
  paper.setAttribute('viewBox', `0 0 ${wide} ${high + 82}`);
  const bars = Array.from({ length: numbers.stages }, (_, stage) => {
    const x = 12 + stage * step;
    const width = Math.min(step - 8, 120);
    let y = high;
    const parts = numbers.kinds.slice().reverse().map(({ kind, size }) => {
      y -= size * scale;
      return svg('rect', { x, y, width, height: Math.max(1, size * scale), class: kind === 'KV' ? 'fill ordinary' : 'fill reversible' });
    });
    const before = svg('rect', { x, y: high - numbers.most * scale, width, height: numbers.most * scale, class: 'before' });
    return svg('g', {}, ...parts, before, svg('text', { x, y: high + 16, class: 'paper-text' }, step > 60 ? `stage ${stage + 1}` : String(stage + 1)));
  });
  const words = numbers.kinds.map(({ kind, text }, place) => svg('g', {}, svg('rect', { x: 12 + place * wide / 2, y: high + 32, width: 12, height: 12, rx: 2, class: kind === 'KV' ? 'fill ordinary' : 'fill reversible' }),
    svg('text', { x: 30 + place * wide / 2, y: high + 43, class: 'paper-text' }, `${kind}: ${text}`)));
  words.push(svg('text', { x: 12, y: high + 66, class: 'paper-text' }, numbers.legend));
  paper.replaceChildren(svg('line', { x1: 8, x2: wide - 8, y1: high, y2: high, class: 'rail' }), ...bars, ...words);
}

// A row for each round: the bits of a block in which two encryptions differ, half by half.
function avalanche(paper, numbers, wide) {
  const [left, right, high] = [62, 74, 15];
  const bits = numbers.rows[0].bits.length;
  const middle = 10;
  const step = (wide - left - right - middle) / bits;
  paper.setAttribute('viewBox', `0 0 ${wide} ${(numbers.most + 1) * high + 12}`);
  paper.replaceChildren(...numbers.rows.map((row, place) => svg('g', {},
    svg('text', { x: 8, y: place * high + 17, class: 'paper-text' }, row.round ? `round ${row.round}` : 'input'),
    ...Array.from(row.bits, (bit, at) => svg('rect', { x: left + at * step + (at >= bits / 2 ? middle : 0), y: place * high + 7, width: step - 1, height: high - 3, class: bit === '1' ? 'bit differs' : 'bit' })),
    svg('text', { x: wide - right + 6, y: place * high + 17, class: 'paper-text' }, row.text))));
}
