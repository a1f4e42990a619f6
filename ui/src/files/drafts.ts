// What was typed into a file and is not saved, kept in this browser until it is: for each person and file.
//
// Never of a sealed file: what is stored here lies on the disk as plain text. A draft that does not fit stays
// in the page alone; who leaves is told so.
import type { Place } from "@/api/place";

const PREFIX = "freezeframe.draft.";

export interface Draft {
  /** What is typed. */
  text: string;
  /** The saved version that it began with: its text and its entity tag. */
  base: string;
  etag: string;
  /** When it was last changed, in milliseconds. */
  at: number;
}

export interface DraftName {
  /** Whose it is: another person at the same browser does not see it. */
  person: string;
  place: Place;
  path: string;
}

export function draftOf(name: DraftName): Draft | undefined {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(name)) ?? "null");
    return isDraft(kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps it; false where the browser has no room for it, and then an earlier draft of the file goes too. */
export function keepDraft(name: DraftName, draft: Draft): boolean {
  try {
    localStorage.setItem(keyOf(name), JSON.stringify(draft));
    return true;
  } catch {
    forgetDraft(name);
    return false;
  }
}

export function forgetDraft(name: DraftName): void {
  localStorage.removeItem(keyOf(name));
}

/** At the end of a session that somebody ended: the browser may be another's next. */
export function forgetAllDrafts(): void {
  for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
}

function keyOf({ person, place, path }: DraftName): string {
  return PREFIX + JSON.stringify([person, place.environment, place.tenant, path]);
}

function isDraft(kept: unknown): kept is Draft {
  if (typeof kept !== "object" || kept === null) return false;
  const { text, base, etag, at } = kept as Record<string, unknown>;
  return [text, base, etag].every((one) => typeof one === "string") && typeof at === "number";
}
