// The rows of a list that can be entered anywhere: of its pages those are read that are seen.
import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import type { Place } from "@/api/place";
import { LISTED_MAX, ROWS_PAGE, type RowsChoice, rowsPageQuery, SORTED_MAX } from "./stream-queries";

export interface Row {
  index: number;
  values: Record<string, unknown>;
}

export function usePages(place: Place, stream: string, choice: RowsChoice) {
  const [seen, setSeen] = useState<readonly number[]>([0]);
  // Of rows that nobody counted each page knows only of one more: what was seen decides.
  const first = useQuery({
    ...rowsPageQuery(place, stream, choice, 0),
    placeholderData: keepPreviousData,
  });
  const pages = seen.filter((page) => page > 0);
  const others = useQueries({ queries: pages.map((page) => rowsPageQuery(place, stream, choice, page)) });
  const loaded = others.map((one) => one.data);
  const parts = [first.data, ...loaded].filter((one) => one !== undefined);
  const exact = parts.find((one) => one.isTotalExact);
  const total = exact?.total ?? Math.max(0, ...parts.map((one) => one.total));
  const most = choice.sort ? SORTED_MAX : LISTED_MAX;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the pages that were read, one by one
  const rows = useMemo(() => {
    const found = new Array<Row | undefined>(Math.min(total, most));
    for (const [place, part] of [first.data, ...loaded].entries()) {
      const begin = (place === 0 ? 0 : (pages[place - 1] ?? 0)) * ROWS_PAGE;
      for (const [offset, values] of (part?.rows ?? []).entries()) {
        if (begin + offset < found.length) found[begin + offset] = { index: begin + offset, values };
      }
    }
    return found;
  }, [first.data, total, most, pages.join(), ...loaded]);

  const onVisible = useCallback((from: number, to: number) => {
    const low = Math.floor(Math.max(0, from) / ROWS_PAGE);
    // The page that follows is read before its first row is seen.
    const high = Math.floor((to + ROWS_PAGE / 4) / ROWS_PAGE);
    const wanted = Array.from({ length: high - low + 1 }, (_, place) => low + place);
    setSeen((before) => (before.join() === wanted.join() ? before : wanted));
  }, []);

  const broken = others.find((one) => one.isLoadingError);
  return { first, rows, total, isTotalExact: exact !== undefined, onVisible, broken };
}
