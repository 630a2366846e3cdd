// What stands on the page belongs to inputs. What belongs to others than those that stand in the form is dimmed: the one place that decides it.
export const keyOf = (inputs) => JSON.stringify(inputs, (_, value) => (value && typeof value === 'object' && !Array.isArray(value)
  ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))) : value));

const owners = new WeakMap(); // of nodes

// The parts that a node is in, and the inputs that its numbers belong to.
export function belongs(node) {
  for (let place = node; place; place = place.parentElement) {
    const parts = owners.get(place);
    if (parts) return { parts, key: parts.keys.get(place) };
  }
  return null;
}

export class Parts {
  // now(): the inputs that stand on the page
  constructor(now) { this.now = now; this.keys = new Map(); }

  get key() { return keyOf(this.now()); }

  // These nodes show what belongs to these inputs.
  show(key, ...nodes) {
    for (const node of nodes) {
      this.keys.set(node, key);
      owners.set(node, this);
    }
    this.look();
  }

  // These nodes are gone.
  drop(...nodes) {
    for (const node of nodes) {
      this.keys.delete(node);
      owners.delete(node);
      node.removeAttribute('data-stale');
    }
  }

  // To be called whenever an input moves.
  look() {
    const now = this.key;
    for (const [node, key] of this.keys) node.toggleAttribute('data-stale', key !== now);
  }
}
