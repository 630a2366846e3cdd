// A table of numbers, as the server made its words: in views, under curves and on cards.
import { el, unique } from './dom.js';

const LONG = 34, LONGEST = 110; // letters from which a column of words may wrap, and from which it is broad
const EDGE = 10, HELD = 0.4; // px of a shade; share of the width up to which the first column stays

export function table(columns, rows, cellOf = (cell) => cell.text) {
  const head = el('tr', {}, columns.map((column) => el('th', { scope: 'col', class: column.number ? 'digits' : '', title: column.doc || null }, column.name)));
  const longest = columns.map((_, place) => Math.max(0, ...rows.map((row) => row[place].text.length)));
  const wraps = (column, letters) => (letters <= LONG ? (column.key === 'value' ? 'wraps' : '') : letters <= LONGEST || column.key === 'value' ? 'long' : 'longest');
  const kinds = columns.map((column, place) => (column.number ? 'digits' : wraps(column, longest[place])));
  const body = rows.map((row) => el('tr', {}, row.map((cell, place) => el('td', { class: kinds[place] }, cellOf(cell, columns[place], row)))));
  return el('table', {}, el('thead', {}, head), el('tbody', {}, body));
}

// The table in a region that scrolls by itself, for a keyboard too. A line says how many columns are seen, and one that is cut is covered whole.
export function wide(name, content) {
  const region = el('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': name }, content);
  const says = el('p', { class: 'quiet columns', hidden: true });
  const [left, right] = ['left', 'right'].map((side) => el('div', { class: `edge ${side}`, hidden: true, 'aria-hidden': 'true' }));
  const cover = (edge, isCut, from, to, box) => {
    edge.hidden = !isCut;
    edge.style.left = `${from - box.left}px`;
    edge.style.width = `${Math.max(to - from, 1)}px`;
    edge.style.bottom = `${region.offsetHeight - region.clientHeight}px`;
  };
  const look = () => {
    const heads = [...region.querySelectorAll('thead th')];
    const at = region.getBoundingClientRect(), box = new DOMRect(at.left, at.top, region.clientWidth, region.clientHeight); // without a scroll bar
    const isCut = region.scrollWidth - region.clientWidth > 1;
    region.classList.toggle('cut', isCut && heads[0].offsetWidth < HELD * box.width);
    says.hidden = !isCut;
    left.hidden = right.hidden = true;
    if (!isCut) return;
    const isHeld = region.classList.contains('cut'); // the first column stays
    const begin = isHeld ? heads[0].getBoundingClientRect().right : box.left;
    const columns = heads.slice(isHeld ? 1 : 0).map((head) => { const place = head.getBoundingClientRect(); return { from: place.left, to: place.right - parseFloat(getComputedStyle(head).paddingRight) }; });
    const over = columns.filter(({ from, to }) => to > box.right + 1 && (from > begin || to - from < box.right - begin)), under = columns.filter(({ from }) => from < begin - 1);
    const [first] = over, last = under.findLast(({ to }) => to > begin && to < box.right);
    const whole = columns.filter((column) => !over.includes(column) && !under.includes(column)); // a shade stands beside their words, not over them
    cover(right, over.length, Math.min(first?.from ?? box.right, Math.max(box.right - EDGE, whole.at(-1)?.to ?? 0)), box.right, box);
    cover(left, under.length, begin, Math.max(last?.to ?? begin, Math.min(begin + EDGE, whole[0]?.from ?? box.right)), box);
    says.textContent = `${heads.length - over.length - under.length} of ${heads.length} columns: scroll sideways for the others`;
  };
  const looks = new ResizeObserver(look);
  looks.observe(region);
  looks.observe(content);
  region.addEventListener('scroll', look, { passive: true });
  region.addEventListener('focusin', (event) => { const cell = event.target.closest('td'); if (cell) cell.scrollIntoView({ block: 'nearest', inline: 'nearest' }); });
  return el('div', { class: 'framed' }, says, el('div', { class: 'frame' }, region, left, right));
}

// Choices over the words of some columns: they hide rows of the table, and a line says how many are left. `chosen` remembers them.
export function filters(keys, { columns, rows }, node, chosen) {
  const lines = [...node.querySelectorAll('tbody tr')];
  const count = el('p', { class: 'quiet', role: 'status' });
  const places = keys.map((key) => columns.findIndex((column) => column.key === key)).filter((place) => place >= 0);
  const look = () => {
    lines.forEach((line, at) => { line.hidden = places.some((place) => (chosen.get(columns[place].key) ?? rows[at][place].text) !== rows[at][place].text); });
    count.textContent = `${lines.filter((line) => !line.hidden).length} of ${lines.length} rows`;
  };
  const choices = places.map((place) => {
    const { key, name } = columns[place];
    const id = unique(key);
    const texts = [...new Set(rows.map((row) => row[place].text))].sort();
    const select = el('select', { id }, el('option', { value: '' }, 'all'), texts.map((text) => el('option', { value: text }, text.replaceAll('_', ' '))));
    if (texts.includes(chosen.get(key))) select.value = chosen.get(key); else chosen.delete(key);
    select.addEventListener('change', () => { if (select.value) chosen.set(key, select.value); else chosen.delete(key); look(); });
    return el('div', { class: 'field' }, el('label', { for: id }, name[0].toUpperCase() + name.slice(1)), select);
  });
  look();
  return el('div', { class: 'filters', role: 'group', 'aria-label': 'Rows of the table' }, choices, count);
}

// The numbers of a curve of this title, folded below it.
export function folded({ columns, rows, more }, title) {
  if (!rows.length) return null;
  return el('details', { class: 'numbers-of' }, el('summary', {}, 'The numbers of this curve'), wide(`Numbers of the curve: ${title}`, table(columns, rows)),
    more > 0 ? el('p', { class: 'quiet' }, `and ${more} more rows by the command with -o csv`) : null);
}
