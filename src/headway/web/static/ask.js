// Questions to the server: those that answer at once, and runs with progress, of which a tab has one.
import { withRuns } from './files.js';

const token = new URLSearchParams(location.hash.slice(1)).get('token');
const headers = { 'content-type': 'application/json', ...(token ? { 'x-headway-token': token } : {}) };
const client = crypto.randomUUID();

export class Fault extends Error {}

async function answered(response) {
  const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Fault(answer.error);
  return answer;
}

export const declared = (path) => fetch(path, { headers }).then(answered);

export async function ask(question, tries = 3) {
  const response = await fetch('/api/ask', { method: 'POST', headers, body: JSON.stringify(withRuns(question)) });
  if (response.status === 503 && tries > 0) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    return ask(question, tries - 1);
  }
  return answered(response);
}

export const live = true;
export const links = {
  chapter: (entry) => `/blackboard?chapter=${encodeURIComponent(entry.label)}${location.hash}`, claim: (id) => `/blackboard?claim=${id}${location.hash}`,
};

// What is not a command: chapters, claims, cards, places of sliders.
export const board = (kind, asked) => ask({ kind, ...asked });

let running = null;
export const cancel = () => { running?.abort(); running = null; };

// A run: `progress(done, of)` is called as it goes, `drafted(answer)` with the answer so far; the promise is the answer. A new run cancels the one before.
export async function run(question, progress, drafted, tries = 6) {
  cancel();
  const mine = new AbortController();
  running = mine;
  const body = JSON.stringify({ ...withRuns(question), client });
  const response = await fetch('/api/run', { method: 'POST', headers, body, signal: mine.signal });
  if (response.status === 503 && tries > 0) { // the run before is still being stopped
    await new Promise((resolve) => setTimeout(resolve, 250));
    if (running !== mine) throw new DOMException('replaced', 'AbortError');
    return run(question, progress, drafted, tries - 1);
  }
  if (!response.ok) return answered(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Fault('the run ended without an answer');
    text += value;
    const messages = text.split('\n\n');
    text = messages.pop();
    for (const message of messages) {
      const event = JSON.parse(message.replace(/^data: /, ''));
      if (event.progress) progress?.(...event.progress);
      if (event.draft) drafted?.(event.draft);
      if (event.error) throw new Fault(event.error);
      if (event.answer) { if (running === mine) running = null; return event.answer; }
    }
  }
}
