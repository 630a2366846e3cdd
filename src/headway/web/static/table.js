// A table of numbers, as the server made its words: in views, under curves and on cards.
import { el } from './dom.js';

const LONG = 34, LONGEST = 110; // letters from which a column of words may wrap, and from which it is broad

export function table(columns, rows, cellOf = (cell) => cell.text) {
  const head = el('tr', {}, columns.map((column) => el('th', { scope: 'col', class: column.number ? 'digits' : '', title: column.doc || null }, column.name)));
  const longest = columns.map((_, place) => Math.max(0, ...rows.map((row) => row[place].text.length)));
  const wraps = (column, letters) => (letters <= LONG ? '' : letters <= LONGEST || column.key === 'value' ? 'long' : 'longest');
  const kinds = columns.map((column, place) => (column.number ? 'digits' : wraps(column, longest[place])));
  const body = rows.map((row) => el('tr', {}, row.map((cell, place) => el('td', { class: kinds[place] }, cellOf(cell, columns[place], row)))));
  return el('table', {}, el('thead', {}, head), el('tbody', {}, body));
}

// The table in a region that scrolls by itself, for a keyboard too.
export const wide = (name, content) => el('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': name }, content);

// The numbers of a curve of this title, folded below it.
export function folded({ columns, rows, more }, title) {
  if (!rows.length) return null;
  return el('details', { class: 'numbers-of' }, el('summary', {}, 'The numbers of this curve'), wide(`Numbers of the curve: ${title}`, table(columns, rows)),
    more > 0 ? el('p', { class: 'quiet' }, `and ${more} more rows by the command with -o csv`) : null);
}
