// What was typed into a file and is not saved, kept in this browser until it is: for each person and file.
//
// Never of a sealed file: what is stored here lies on the disk as plain text. A draft that does not fit stays
// in the page alone; who leaves is told so.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Place } from "@/api/client";
import { whoQuery } from "@/api/queries";
import { usePanel } from "@/navigation/panel";

const PREFIX = "freezeframe.draft.";

interface Draft {
  /** What is typed. */
  text: string;
  /** The saved version that it began with: its text and its entity tag. */
  base: string;
  etag: string;
  /** When it was last changed, in milliseconds. */
  at: number;
}

interface DraftName {
  /** Whose it is: another person at the same browser does not see it. */
  person: string;
  place: Place;
  path: string;
}

function draftOf(name: DraftName): Draft | undefined {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(name)) ?? "null");
    return isDraft(kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps it; false where the browser has no room for it, and then an earlier draft of the file goes too. */
function keepDraft(name: DraftName, draft: Draft): boolean {
  try {
    localStorage.setItem(keyOf(name), JSON.stringify(draft));
    return true;
  } catch {
    forgetDraft(name);
    return false;
  }
}

function forgetDraft(name: DraftName): void {
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

/** Each key stores the whole of both texts: above this it would be felt. */
const KEPT_CHARACTERS_MAX = 500_000;

interface Saved {
  path: string;
  text: string;
  etag: string;
  /** Neither sealed nor of the past. */
  isKept: boolean;
}

interface TypedText {
  text: string;
  set: (text: string) => void;
  /** Whether leaving the page loses what is typed. */
  isLost: boolean;
  /** When what is shown was typed, where that was in an earlier visit; in milliseconds. */
  restoredFrom: number | undefined;
  /** What was typed on an earlier version than the one that is shown. */
  earlier: Draft | undefined;
  forget: () => void;
  /** Told that `saved` is kept now; what was typed since stays as a draft of that version. */
  onSaved: (typed: string, saved: string, etag: string) => void;
}

export function useDraft({ path, text, etag, isKept }: Saved): TypedText {
  const { place } = usePanel();
  const person = useQuery(whoQuery).data?.id;
  const name = useMemo(
    () => (isKept && person !== undefined ? { person, place, path } : undefined),
    [isKept, person, place, path],
  );
  const [found, setFound] = useState(() => name && draftOf(name));
  const isOfThis = found !== undefined && found.etag === etag && found.base === text;
  const [typed, setTyped] = useState(isOfThis ? found.text : text);
  const latest = useRef(typed);
  const [isStored, setStored] = useState(isOfThis);
  const earlier = found !== undefined && !isOfThis && found.text !== text ? found : undefined;

  function set(next: string) {
    latest.current = next;
    setTyped(next);
    if (!name) return;
    if (next === text) forgetDraft(name);
    else if (next.length + text.length > KEPT_CHARACTERS_MAX) setStored(false);
    else setStored(keepDraft(name, { text: next, base: text, etag, at: Date.now() }));
  }
  useEffect(() => {
    // What is saved has it all.
    if (name && found?.text === text) forgetDraft(name);
  }, [name, found, text]);

  return {
    text: typed,
    set,
    isLost: !isStored,
    restoredFrom: isOfThis && typed === found.text && typed !== text ? found.at : undefined,
    earlier,
    forget() {
      if (name) forgetDraft(name);
      setFound(undefined);
    },
    onSaved(before, saved, newEtag) {
      if (!name) return;
      if (latest.current === before) forgetDraft(name);
      else keepDraft(name, { text: latest.current, base: saved, etag: newEtag, at: Date.now() });
      setFound(undefined);
    },
  };
}
