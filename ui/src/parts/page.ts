// What components share of the page itself: its nonce, its overlays, downloads, the focus, keys, followed values.
import { useEffect, useRef, useState, useSyncExternalStore } from "react";

/** With it, and only with it, a style element may be added (see the service's asgi/console.py). */
export function styleNonce(): string {
  return document.querySelector('meta[name="csp-nonce"]')?.getAttribute("content") ?? "";
}

/** Where menus and lists of choices are drawn: in the page's main part, which screen readers can name. */
export const OVERLAYS = "overlays";

/** Has the browser save what is at an address, under the name that the service gives it. */
export function save(address: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
}

/** Whether what had the focus is gone, so that nobody has it but the page, or what holds it until there is more. */
export function isFocusLost(): boolean {
  const holder = document.activeElement;
  return holder === null || holder === document.body || holder.hasAttribute("data-focus-rest");
}

/** Gives the focus to what has `data-focus-rest` whenever what had it goes; the next part takes it from there. */
export function useFocusRest(): void {
  useEffect(() => {
    const watch = new MutationObserver(() => {
      if (document.activeElement === document.body)
        document.querySelector<HTMLElement>("[data-focus-rest]")?.focus({ preventScroll: true });
    });
    watch.observe(document.body, { childList: true, subtree: true });
    return () => watch.disconnect();
  }, []);
}

/** Gives the focus back to what had it, when a dialog that took it is taken out of the page as a whole. */
export function useFocusBack(): void {
  const [before] = useState(() => openerOf(document.activeElement));
  useEffect(
    () => () => {
      // After the page has settled: what is behind a dialog may have been drawn anew with it.
      setTimeout(() => {
        if (isFocusLost() && before instanceof HTMLElement && before.isConnected)
          before.focus({ preventScroll: true });
      });
    },
    [before],
  );
}

/** What to go back to: an entry of a menu is gone with the menu, and what opened that is not. */
function openerOf(element: Element | null): Element | null {
  const opener = element?.closest('[role="menu"]')?.getAttribute("aria-labelledby");
  return opener ? document.getElementById(opener) : element;
}

interface Followed<T> {
  get: () => T;
  /** Tells all who follow, unless it is the very same value. */
  set: (next: T) => void;
  useValue: () => T;
}

/** A value of the page, outside of any component, that components follow. */
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

export const SHORTCUTS: readonly [keys: string, does: string][] = [
  ["Ctrl K", "Search tenants, streams, files, jobs, pages and rows"],
  ["↑ ↓ Home End", "Move in a list"],
  ["Enter", "Open"],
  ["Space", "Select"],
  ["Ctrl A", "Select all"],
  ["U", "Upload"],
  ["N", "Create folder"],
  ["D", "Download"],
  ["Del", "Delete"],
  ["Ctrl S", "Save the file that you edit"],
  ["Ctrl Z", "Undo the last deletion or move"],
  ["Esc", "Close"],
  ["?", "Show this list"],
];

const JUMP = "mod+k";

type Actions = Record<string, (() => void) | undefined>;

/** Calls the action of a key: `u`, `Delete`, `?`, or `mod+k` (Ctrl or Cmd). */
export function useShortcuts(actions: Actions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent) {
      const isModified = event.ctrlKey || event.metaKey;
      const name = isModified ? `mod+${event.key.toLowerCase()}` : event.key;
      const action = latest.current[name] ?? latest.current[name.toLowerCase()];
      if (!action || event.altKey || event.defaultPrevented) return;
      // Who types has keys of the field's own; only to jump away is for everybody.
      if (name !== JUMP && isTyping(event.target)) return;
      event.preventDefault();
      action();
    }
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

const AT_ONCE = 4;

/** Some at once, and not all: the service has others to answer. */
export async function inTurn<T>(those: readonly T[], act: (one: T) => Promise<void>): Promise<void> {
  const left = [...those];
  const worker = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) await act(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
