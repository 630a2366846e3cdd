'use strict';
// The atlas: filters, a table and a picture over the plans in the page. Every text is headway's; here are only choice, order and place.
const data = JSON.parse(document.getElementById('data').textContent), $ = (id) => document.getElementById(id);
const CHOICES = ['load', 'model', 'on', 'format'], INPUTS = [...CHOICES, 'budget', 'cost', 'holds'], STEP = 60;
const LEFT = 68, RIGHT = 16, TOP = 22, BOTTOM = 44, LETTER = 6.6;
let WIDTH = 900, HEIGHT = 420, order = { key: 'usd_per_mtok_out', down: false }, limit = STEP, open = null, points = [], at = -1;

function element(tag, text, attributes = {}, space = '') {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}
const svg = (tag, attributes, text) => element(tag, text, attributes, 'http://www.w3.org/2000/svg');
const budget = () => { const typed = Number($('budget').value.replace(/[$,\s]/g, '')); return typed > 0 ? typed : Infinity; };

function chosen() {
  const holds = $('holds').checked, most = budget();
  return data.rows.filter((row) => CHOICES.every((name) => !$(name).value || row[name] === $(name).value)
    && (!holds || !row.why) && (most === Infinity || (!row.why && row.n.usd_per_month <= most)));
}

function sorted(rows) {
  const of = (row) => (order.key in data.heads ? row.n[order.key] : row[order.key]), sign = order.down ? -1 : 1;
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return [...rows].sort((a, b) => Boolean(a.why) - Boolean(b.why) || sign * compare(of(a), of(b)));
}

// -- the table ------------------------------------------------------------------------------------------------------------------------
const COLUMNS = { model: 'model', on: 'machine', load: 'load', format: 'format', layout: 'layout', ...data.heads };

function heads() {
  $('heads').replaceChildren(...Object.entries(COLUMNS).map(([key, name]) => {
    const head = element('th', undefined, { scope: 'col', 'aria-sort': order.key !== key ? 'none' : order.down ? 'descending' : 'ascending' });
    const button = head.appendChild(element('button', name + (order.key !== key ? '' : order.down ? ' \u2193' : ' \u2191'), { type: 'button', 'data-sort': key }));
    button.addEventListener('click', () => {
      order = { key, down: order.key === key && !order.down };
      draw();
      document.querySelector(`[data-sort="${key}"]`).focus();
    });
    return head;
  }));
}

function copyable(label, command) {
  const box = element('div', undefined, { class: 'launch' }), button = element('button', 'Copy', { type: 'button', class: 'copy', 'aria-label': `Copy: ${label}` });
  const code = element('code', command);
  button.addEventListener('click', async () => {
    getSelection().selectAllChildren(code);
    try { await navigator.clipboard.writeText(command); button.textContent = 'Copied'; } catch { button.textContent = 'Selected'; }
  });
  box.append(element('p', label, { class: 'quiet' }), code, button);
  return box;
}

function facts(row) {
  const cell = element('td', undefined, { class: 'facts', colspan: Object.keys(COLUMNS).length }), line = element('tr');
  cell.append(element('p', row.why ? `Does not keep the load: ${row.why}` : `${row.layout}; bound by ${row.bound}; limits of the load: ${data.loads[row.load]}.`));
  cell.append(copyable('This cell', row.command), copyable('The same, simulated: limits on the 95th percentile', row.check));
  line.append(cell);
  return line;
}

function body(rows) {
  $('rows').replaceChildren(...rows.slice(0, limit).flatMap((row) => {
    const line = element('tr', undefined, { 'data-cell': `${row.load} ${row.model} ${row.on}` }), isOpen = open === row;
    const button = element('button', row.model, { type: 'button', 'aria-expanded': isOpen, title: 'Its command' });
    button.addEventListener('click', () => show(isOpen ? null : row));
    line.appendChild(element('td')).append(button);
    for (const key of ['on', 'load', 'format']) line.append(element('td', row[key]));
    if (row.why) line.append(element('td', row.why, { class: 'why', colspan: 1 + Object.keys(data.heads).length }));
    else {
      line.append(element('td', row.layout));
      for (const key of Object.keys(data.heads)) {
        const cell = line.appendChild(element('td', row.texts[key][0], { class: 'digits', 'data-key': key }));
        if (row.texts[key][1]) cell.append(element('span', row.texts[key][1], { class: 'quiet' }));
      }
    }
    return isOpen ? [line, facts(row)] : [line];
  }));
  $('more').hidden = rows.length <= limit;
}

function show(row) {
  open = row;
  draw();
  const line = row && document.querySelector(`[data-cell="${row.load} ${row.model} ${row.on}"] button`);
  if (line) { line.focus(); line.scrollIntoView({ block: 'nearest' }); }
}

// -- the picture ----------------------------------------------------------------------------------------------------------------------
function scale(values, from, to) {
  const low = Math.log10(Math.min(...values)) - 0.06, high = Math.log10(Math.max(...values)) + 0.06;
  const ticks = [];
  for (let power = Math.floor(low); power <= high; power += 1) for (const digit of high - low > 2.2 ? [1] : [1, 2, 5]) {
    const place = power + Math.log10(digit);
    if (place >= low && place <= high) ticks.push(Number((digit * 10 ** power).toPrecision(1)));
  }
  return { ticks, place: (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from) };
}

function frontier(rows, key) {
  let least = Infinity;
  return [...rows].sort((a, b) => b.n.tok_per_s_user - a.n.tok_per_s_user || a.n[key] - b.n[key]).filter((row) => row.n[key] < least && (least = row.n[key]));
}

function axes(drawing, x, y, key) {
  for (const tick of x.ticks) drawing.append(svg('line', { class: 'grid', x1: x.place(tick), x2: x.place(tick), y1: TOP, y2: HEIGHT - BOTTOM }),
    svg('text', { x: x.place(tick), y: HEIGHT - BOTTOM + 16, 'text-anchor': 'middle' }, tick));
  for (const tick of y.ticks) drawing.append(svg('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y.place(tick), y2: y.place(tick) }),
    svg('text', { x: LEFT - 8, y: y.place(tick) + 4, 'text-anchor': 'end' }, `$${tick.toLocaleString('en')}`));
  drawing.append(svg('text', { x: WIDTH - RIGHT, y: HEIGHT - 8, 'text-anchor': 'end' }, 'tokens per second of one user'),
    svg('text', { x: 4, y: 13 }, $('cost').selectedOptions[0].textContent));
}

function picture(rows) {
  const key = $('cost').value, fit = rows.filter((row) => !row.why), best = frontier(fit, key), cheapest = best.at(-1);
  $('plot').replaceChildren();
  points = [...fit].sort((a, b) => a.n.tok_per_s_user - b.n.tok_per_s_user);
  at = -1;
  $('tip').textContent = points.length ? 'Blue: nothing faster is as cheap. Point at a plan, or use the arrow keys; a click or Enter opens it below.' : '';
  $('subtitle').textContent = points.length ? `${$('cost').selectedOptions[0].textContent} against speed, ${points.length} plans that keep their limits` : '';
  $('finding').textContent = cheapest ? `Cheapest: ${cheapest.model} on ${cheapest.on}, ${cheapest.texts[key][0]}${key === 'usd_per_month' ? ' a month' : ' per Mtok of output'} at ${cheapest.texts.tok_per_s_user[0]} a user`
    : rows.length ? 'No plan here keeps its limits' : 'No plan matches: take a filter away';
  if (!points.length) return;
  WIDTH = Math.max(300, Math.min(1100, $('plot').clientWidth));
  HEIGHT = Math.round(Math.max(300, WIDTH * 0.42));
  const x = scale(fit.map((row) => row.n.tok_per_s_user), LEFT, WIDTH - RIGHT), y = scale(fit.map((row) => row.n[key]), HEIGHT - BOTTOM, TOP);
  const drawing = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, 'aria-hidden': 'true' });
  axes(drawing, x, y, key);
  drawing.append(svg('polyline', { class: 'edge', points: best.map((row) => `${x.place(row.n.tok_per_s_user)},${y.place(row.n[key])}`).join(' ') }));
  const others = points.filter((row) => !best.includes(row)), taken = [];
  for (const row of [...others, ...best]) {
    const dot = svg('circle', { cx: x.place(row.n.tok_per_s_user), cy: y.place(row.n[key]), r: best.includes(row) ? 5 : 4, ...(best.includes(row) ? { class: 'best' } : {}) });
    dot.addEventListener('pointerenter', () => here(row));
    dot.addEventListener('click', () => show(row));
    row.dot = dot;
    drawing.append(dot);
  }
  for (const row of best) taken.push({ x: x.place(row.n.tok_per_s_user) - 6, y: y.place(row.n[key]) + 4, width: 12 });
  for (const row of [...best].reverse()) label(drawing, row, x.place(row.n.tok_per_s_user), y.place(row.n[key]), taken);
  $('plot').append(drawing);
}

function label(drawing, row, x, y, taken) { // below its point, else above it, where no other label stands; else not at all
  const text = `${row.model} on ${row.on}`, width = text.length * LETTER;
  for (const [left, down, anchor] of [[x + 8, 14, 'start'], [x - 8 - width, -6, 'end'], [x + 8, -6, 'start'], [x - 8 - width, 14, 'end']]) {
    const box = { x: left, y: y + down };
    const isFree = !taken.some((one) => Math.abs(one.y - box.y) < 14 && one.x < box.x + width && box.x < one.x + one.width);
    if (box.x < LEFT || box.x + width > WIDTH || box.y > HEIGHT - BOTTOM || box.y < TOP + 8 || !isFree) continue;
    taken.push({ ...box, width });
    drawing.append(svg('text', { class: 'name', x: anchor === 'start' ? x + 8 : x - 8, y: box.y, 'text-anchor': anchor }, text));
    return;
  }
}

function here(row) {
  for (const other of points) other.dot.classList.toggle('here', other === row);
  at = points.indexOf(row);
  const between = row.texts.tpot_s[1] ? ` (90 %: ${row.texts.tpot_s[1]})` : '';
  $('tip').textContent = `${row.model} on ${row.on}, ${row.load}: ${row.texts.tok_per_s_user[0]} a user, TPOT ${row.texts.tpot_s[0]}${between}, ${row.texts.usd_per_mtok_out[0]} per Mtok of output, ${row.texts.usd_per_month[0]} a month for ${row.texts.chips[0]} chips`;
}

$('plot').addEventListener('keydown', (event) => {
  const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  if (step && points.length) { event.preventDefault(); here(points[(at + step + points.length) % points.length]); }
  if (event.key === 'Enter' && at >= 0) { event.preventDefault(); show(points[at]); }
});

// -- together -------------------------------------------------------------------------------------------------------------------------
function draw() {
  const rows = sorted(chosen());
  if (open && !rows.includes(open)) open = null;
  if (open && rows.indexOf(open) >= limit) limit = rows.indexOf(open) + 1;
  const kept = rows.filter((row) => !row.why).length;
  $('about').textContent = $('load').value ? `${$('load').value}: ${data.loads[$('load').value]}.` : '';
  $('shown').textContent = `${rows.length} plans, ${kept} keep their limits`;
  heads();
  body(rows);
  picture(rows);
  const asked = INPUTS.map((name) => [name, name === 'holds' ? ($('holds').checked ? '1' : '') : $(name).value]).filter(([, value]) => value);
  history.replaceState(null, '', `#${new URLSearchParams([...asked, ...(open ? [['cell', `${open.load} ${open.model} ${open.on}`]] : [])])}`);
}

for (const name of CHOICES) {
  const values = [...new Set(data.rows.map((row) => row[name]))];
  if (name === 'format') values.sort();
  $(name).append(...values.map((value) => element('option', value, { value })));
}
$('load').append(element('option', 'all', { value: '' }));
const asked = new URLSearchParams(location.hash.slice(1));
for (const name of INPUTS) if (asked.has(name)) { if (name === 'holds') $(name).checked = asked.get(name) === '1'; else $(name).value = asked.get(name); }
if (asked.size && !asked.has('load')) $('load').value = '';
open = data.rows.find((row) => `${row.load} ${row.model} ${row.on}` === asked.get('cell')) ?? null;
$('filters').addEventListener('input', () => { limit = STEP; draw(); });
$('filters').addEventListener('submit', (event) => event.preventDefault());
addEventListener('resize', () => picture(sorted(chosen())));
$('more').addEventListener('click', () => { limit += STEP; draw(); });
draw();
