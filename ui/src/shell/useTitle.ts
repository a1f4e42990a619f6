// The title of the browser's tab: what is open, the tenant, the page.
import { useLocation, useParams, useSearch } from "@tanstack/react-router";
import { useEffect } from "react";
import type { PanelSearch } from "@/navigation/search";

export function useTitle(): void {
  const { pathname } = useLocation();
  const { tenant } = useParams({ strict: false });
  const search = useSearch({ strict: false }) as PanelSearch;
  const page = pathname.split("/")[1] ?? "";
  const open = search.stream ?? search.file ?? search.job ?? search.path;
  const parts = tenant === undefined ? [named(page)] : [open, named(search.panel ?? "snapshots"), tenant];
  const title = [...parts, "freezeframe"].filter(Boolean).join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}

function named(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
