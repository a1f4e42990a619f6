// What every part of the panel needs: whose panel it is, what its address says, and how to change that.
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Place } from "@/api/client";
import { useEnvironment } from "@/session/session";
import type { PanelSearch } from "./search";

interface Panel {
  place: Place;
  search: PanelSearch;
  /** The version as of which everything is shown; undefined: now. */
  version: number | undefined;
  /** Changes some of what the address says; `undefined` takes it out. */
  go: (changes: PanelSearch, replace?: boolean) => void;
}

export function usePanel(): Panel {
  const { tenant = "" } = useParams({ strict: false });
  const search: PanelSearch = useSearch({ strict: false });
  const environment = useEnvironment();
  const navigate = useNavigate();
  const place = useMemo(() => ({ environment, tenant }), [environment, tenant]);
  return {
    place,
    search,
    version: search.v,
    go: (changes, replace = false) =>
      void navigate({
        to: ".",
        search: ((before: PanelSearch) => ({ ...before, ...changes })) as never,
        replace,
      }),
  };
}

/** Opens a tenant's panel; without anything else its snapshots. */
export function useOpenTenant() {
  const navigate = useNavigate();
  return ({ environment, tenant }: Place, search: PanelSearch = {}) =>
    void navigate({
      to: "/tenants/$tenant",
      params: { tenant },
      search: { env: environment, panel: "snapshots", ...search },
    });
}

/** What is no longer meant when another folder, file, stream or tab is opened. */
export const NOTHING_OPEN: PanelSearch = {
  file: undefined,
  stream: undefined,
  view: undefined,
  where: undefined,
  columns: undefined,
  by: undefined,
  row: undefined,
  as: undefined,
  find: undefined,
  before: undefined,
  after: undefined,
  diff: undefined,
  job: undefined,
  show: undefined,
};
