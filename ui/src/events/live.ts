// Whether the service tells by itself what happens; while it does not, lists that change look by themselves.
import { useSyncExternalStore } from "react";

const LOOKED_EVERY_MS = 4_000;
const listeners = new Set<() => void>();
let isLive = false;

export function setLive(now: boolean): void {
  if (now === isLive) return;
  isLive = now;
  for (const listener of listeners) listener();
}

/** How often what changes has to be read again: not at all while the service tells of changes. */
export function useLookAgain(): number | false {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isLive,
  )
    ? false
    : LOOKED_EVERY_MS;
}
