// Whether the service answers, and when it did last: that is the age of what the page shows.
import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let lastAnswer = Date.now();
let lostAt: number | undefined;

export function noteAnswer(): void {
  lastAnswer = Date.now();
  set(undefined);
}

export function noteUnreachable(): void {
  set(lostAt ?? lastAnswer);
}

/** When the service answered last, in milliseconds, while it does not; else undefined. */
export function useLostSince(): number | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => lostAt,
  );
}

function set(next: number | undefined): void {
  if (next === lostAt) return;
  lostAt = next;
  for (const listener of listeners) listener();
}
