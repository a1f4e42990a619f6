// The text of a file as it is typed, with what was typed earlier and never saved.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { whoQuery } from "@/api/queries";
import { usePanel } from "@/navigation/panel";
import { type Draft, draftOf, forgetDraft, keepDraft } from "./drafts";

/** Each key stores the whole of both texts: above this it would be felt. */
const KEPT_CHARACTERS_MAX = 500_000;

interface Saved {
  path: string;
  text: string;
  etag: string;
  /** Neither sealed nor of the past. */
  isKept: boolean;
}

export interface TypedText {
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
