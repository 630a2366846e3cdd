// While an answer is computed: what is being done, in words, and the answer that the same question had before.
import { el } from './dom.js';

export const narrow = window.matchMedia('(max-width: 50rem)');
narrow.addEventListener('change', () => document.querySelectorAll('.fold').forEach((fold) => { fold.open = !narrow.matches; }));

// The view's sentence with the words of its question; a part in brackets is left out where the question lacks its word.
export function work(view, { words, flags }) {
  const fill = (text) => text.replace(/\{(w|[\w-]+)\}/g, (_, name) => [(name === 'w' ? words.join(' ') : flags[name]) ?? ''].flat().join(', ').replace(/,(?! )/g, ', '));
  const has = (part) => [...part.matchAll(/\{(w|[\w-]+)\}/g)].every(([, name]) => (name === 'w' ? words.length : flags[name]));
  const says = view.work ?? `computing ${view.verb}[ of {w}][ on {on}]`;
  const text = fill(says.replace(/\[([^\]]*)\]/g, (_, part) => (has(part) ? part : '')));
  return `${text[0].toUpperCase()}${text.slice(1)} …`;
}

// What stands on the page before the form is known.
export const opening = (view, state) => el('p', { class: 'work opening' }, work(view, state));

const place = (page, view) => `headway-earlier-${page.name}-${view.name}`;

// The last answer of exactly this question, as it was kept in this browser.
export function earlier(page, view, key) {
  try {
    const last = JSON.parse(localStorage.getItem(place(page, view)));
    return last?.key === key ? last : null;
  } catch { return null; } // a private window
}

export function keepEarlier(page, view, key, { answer, figures, whose }) {
  try { localStorage.setItem(place(page, view), JSON.stringify({ key, answer, figures, whose })); } catch { /* a private window */ }
}
