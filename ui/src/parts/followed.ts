// A value of the page, outside of any component, that components follow.
import { useSyncExternalStore } from "react";

export interface Followed<T> {
  get: () => T;
  /** Tells all who follow, unless it is the very same value. */
  set: (next: T) => void;
  useValue: () => T;
}

export function followed<T>(first: T): Followed<T> {
  const listeners = new Set<() => void>();
  let value = first;
  const get = () => value;
  function subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }
  return {
    get,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    useValue: () => useSyncExternalStore(subscribe, get),
  };
}
