// Uploads that the end of a page cut off: listed when it is there again, until they are sent anew or dismissed.
//
// In the session's storage, for each browser tab its own: what another tab is sending was not interrupted.
import type { Place } from "@/api/place";
import { followed } from "@/parts/followed";

const KEY = "freezeframe.interrupted";

export interface Interrupted {
  place: Place;
  path: string;
}

const interrupted = followed(read());

export const useInterrupted = interrupted.useValue;

export function forgetInterrupted(isGone: (one: Interrupted) => boolean): void {
  const known = interrupted.get();
  if (known.some(isGone)) set(known.filter((one) => !isGone(one)));
}

/** To be called at the end of a page, with what it had not sent. */
export function noteInterrupted(unsent: readonly Interrupted[]): void {
  if (unsent.length > 0) set([...interrupted.get(), ...unsent.map(({ place, path }) => ({ place, path }))]);
}

function set(next: readonly Interrupted[]): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    // Without room for it the list ends with the page.
  }
  interrupted.set(next);
}

function read(): readonly Interrupted[] {
  try {
    const kept: unknown = JSON.parse(globalThis.sessionStorage?.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isOne) : [];
  } catch {
    return [];
  }
}

function isOne(kept: Partial<Interrupted> | null): kept is Interrupted {
  return typeof kept?.path === "string" && typeof kept.place?.tenant === "string";
}
