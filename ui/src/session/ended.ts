// Whether the session of who looks at the page has ended: the page stays, and a dialog asks to sign in again.
import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let isEnded = false;

export function setEnded(now: boolean): void {
  if (now === isEnded) return;
  isEnded = now;
  for (const listener of listeners) listener();
}

export function useEnded(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isEnded,
  );
}
