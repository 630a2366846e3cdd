// A chapter of the lecture as a page of its own, without a server.
import { Blackboard } from './board.js';
import { widened } from './colours.js';
import { replace } from './dom.js';

const board = new Blackboard(() => {});
replace(document.getElementById('board'), board.node);

async function show() {
  const query = new URLSearchParams(location.hash.slice(1));
  query.set('chapter', document.body.dataset.chapter);
  await board.show(query);
  document.body.dataset.ready = String(Number(document.body.dataset.ready ?? 0) + 1);
}

window.addEventListener('hashchange', show);
widened(() => board.redraw());
show();
