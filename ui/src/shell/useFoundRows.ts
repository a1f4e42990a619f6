// Rows that hold a text, told by the service while it searches; what is typed on, or Escape, ends the search.
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { address, withQuery } from "@/api/client";

const TYPED_MS = 250;
const LETTERS_MIN = 2;

export interface FoundRow {
  tenant: string;
  stream: string;
  key: Record<string, unknown>;
  column: string;
  value: string;
}

interface Progress {
  tenants: number;
  unreadable: number;
  is_whole: boolean;
}

export interface Search {
  rows: readonly FoundRow[];
  progress: Progress | null;
  state: "idle" | "looking" | "ended" | "failed";
}

const IDLE: Search = { rows: [], progress: null, state: "idle" };

/** Looks in one tenant, or without one in all of the environment that the caller may read. */
export function useFoundRows(environment: string, tenant: string | undefined, text: string): Search {
  const [typed] = useDebouncedValue(text, TYPED_MS);
  const [search, setSearch] = useState(IDLE);
  // A single letter is in every tenant; in one it can be a key.
  const isWanted = typed.length >= (tenant === undefined ? LETTERS_MIN : 1);
  const url = withQuery(address`/environments/${environment}/found-rows`, { text: typed, tenant });
  useEffect(() => {
    setSearch(IDLE);
    if (!isWanted) return;
    setSearch({ ...IDLE, state: "looking" });
    const events = new EventSource(url);
    events.addEventListener("row", (event) => {
      const row = JSON.parse(String(event.data)) as FoundRow;
      setSearch((before) => ({ ...before, rows: [...before.rows, row] }));
    });
    const progressed = (state: Search["state"]) => (event: MessageEvent) => {
      const progress = JSON.parse(String(event.data)) as Progress;
      setSearch((before) => ({ ...before, progress, state }));
    };
    events.addEventListener("progress", progressed("looking"));
    events.addEventListener("end", (event) => {
      events.close();
      progressed("ended")(event);
    });
    // The browser would ask again, and tell everything twice.
    events.onerror = () => {
      events.close();
      setSearch((before) => ({ ...before, state: "failed" }));
    };
    return () => events.close();
  }, [url, isWanted]);
  // What was found for another text is not shown while this one waits.
  return typed === text && isWanted ? search : { ...IDLE, state: text === typed ? "idle" : "looking" };
}
