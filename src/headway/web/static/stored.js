// In place of a server: answers that were made ahead, for pages that open without one (web/stored_pages.py writes them).
import { el } from './dom.js';
import { keyOf } from './fresh.js';

export class Fault extends Error {}

const SHRINKS = 1.15; // a picture may be this much wider than its place, whose style makes it fit
export const live = false;
export const links = { chapter: (entry) => entry.file, claim: (id) => `#claim=${id}` };

const files = new Map();
window.headwayStored = {};

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

// A file of answers comes as a script, because a page that was opened from a disk may read no other kind.
function load(name) {
  if (!files.has(name)) {
    files.set(name, new Promise((resolve, reject) => {
      const script = el('script', { src: `answers/${encodeURIComponent(name)}.js` });
      script.addEventListener('load', () => resolve(unpacked(window.headwayStored[name])));
      script.addEventListener('error', () => reject(new Fault(`the file answers/${name}.js is missing`)));
      document.head.append(script);
    }));
  }
  return files.get(name);
}

const nameOf = ({ kind, id, name, chapter, verb, words }) => (kind ? id ?? name ?? `chapter-${chapter}` : verb === 'lecture' ? words[0] : verb);

export async function ask(question) {
  const { parts, picture, axes, shape, width, ...asked } = question;
  if (asked.flags?.with) asked.flags = { ...asked.flags, with: [...asked.flags.with].sort() };
  const file = await load(nameOf(question));
  const answer = file.answers[file.keys[keyOf(asked)]];
  if (!answer) throw new Fault('This position is not among those that were computed ahead; headway web answers it.');
  if (answer.error) throw new Fault(answer.error);
  if (!answer.drawn) return structuredClone(answer);
  const widths = Object.keys(answer.drawn).map(Number);
  const drawn = answer.drawn[Math.max(...widths.filter((wide) => wide <= width * SHRINKS), Math.min(...widths))];
  const shown = (!parts.includes('answer') && drawn.moving) || drawn.rest; // while a slider moves, the axes stay
  return { ...answer, pictures: structuredClone(shown).map((one) => ({ ...one, spec: file.specs[one.shape] })) };
}

export const run = ask;
export const board = (kind, asked) => ask({ kind, ...asked });
