// Keys that do something wherever the focus is, but in a field that takes text.
import { useEffect, useRef } from "react";

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
