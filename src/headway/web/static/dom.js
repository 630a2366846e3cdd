// Elements from words: text goes in as text, never as markup.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'value') node.value = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

// Words that stand already are left alone: to set them again would be to lay out anew.
export function tell(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let serial = 0;
export const unique = (stem) => `${stem.replace(/[^\w-]/g, '-')}-${++serial}`;

export async function copied(button, text) {
  await navigator.clipboard.writeText(text).catch(() => {});
  const before = button.textContent;
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = before; }, 1200);
}

export function saved(name, text, type) {
  const address = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], { type }));
  el('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 5000);
}

// A command line that can be copied; `label` says what it gives.
export function commandLine(command, label = 'The same on the command line') {
  const copy = el('button', { type: 'button', class: 'copy', 'aria-label': 'Copy the command line' }, 'Copy');
  copy.addEventListener('click', () => copied(copy, command));
  return el('p', { class: 'command' }, el('span', { class: 'quiet' }, label), el('code', {}, command), copy);
}
