// The panel of one tenant, sliding in from the right over the list: its tabs, and the bar that says "as of".
import { Button, Drawer, Tabs, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { IconClock } from "@tabler/icons-react";
import { usePrefetchInfiniteQuery, useQuery } from "@tanstack/react-query";
import { CatchBoundary, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { asProblem } from "@/api/problem";
import { folderQuery, overviewQuery } from "@/api/queries";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { jobsSearch, PANEL_TABS, type PanelTab } from "@/navigation/search";
import { exactText } from "@/parts/formats";
import { useFocusBack, useFocusRest } from "@/parts/page";
import { EmptyNote, LateSkeleton, PartProblem, ProblemNote } from "@/parts/states";
import { NARROW } from "@/parts/VirtualGrid";
import { CopyText } from "@/parts/values";
import { useMay } from "@/session/session";
import { SnapshotsTab } from "@/snapshots/SnapshotsTab";
import "./tenants.css";

const HistoryTab = lazy(() => import("@/history/HistoryTab"));
const JobsTab = lazy(() => import("@/jobs/JobsTab"));
const SettingsTab = lazy(() => import("./SettingsTab"));
const TITLES: Record<PanelTab, string> = {
  snapshots: "Snapshots",
  history: "History",
  jobs: "Jobs",
  settings: "Settings",
};

/** Over the list of tenants, or that of jobs: closed, it leaves what it lies over. */
export function TenantPanel({ list = "tenants" }: { list?: "tenants" | "jobs" }) {
  const { place, search, go } = usePanel();
  const [isOpen, setOpen] = useState(false);
  const isNarrow = useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
  const navigate = useNavigate();
  const may = useMay();
  const overview = useQuery(overviewQuery(place));
  // Asked for at once, and not only when the panel has begun to slide in.
  usePrefetchInfiniteQuery(folderQuery(place, search.path ?? "", search.v));
  useFocusBack();
  const tab = search.panel ?? "snapshots";
  const tabs = PANEL_TABS.filter((one) => one !== "jobs" || may("jobs:read"));

  // Opened after the first paint, so that it slides in also when the address itself names it.
  useEffect(() => setOpen(true), []);
  useEscape(() => close());
  useFocusRest();

  function close() {
    if (list === "jobs") void navigate({ to: "/jobs", search: jobsSearch({ ...search }) });
    else void navigate({ to: "/tenants", search: { env: search.env, q: search.q, sort: search.sort } });
  }

  return (
    <Drawer
      opened={isOpen}
      onClose={close}
      closeOnEscape={false}
      position="right"
      size={isNarrow ? "100%" : "62%"}
      transitionProps={{ duration: 120 }}
      overlayProps={{ backgroundOpacity: 0.2 }}
      title={<span title={place.tenant}>{place.tenant}</span>}
      closeButtonProps={{ "aria-label": "Close the panel" }}
      classNames={{ content: "panel", body: "panel-content", header: "panel-header", title: "panel-title" }}
    >
      <div className="panel-facts">
        <Text size="xs" c="dimmed" component="div">
          <span>{place.environment} ·</span>
          {overview.data && (
            <span>{overview.data.version < 0 ? "no version yet" : `version ${overview.data.version}`} ·</span>
          )}
          <CopyText text={place.tenant} shown="copy the id" label="tenant id" />
        </Text>
      </div>
      <PastBar />
      <Tabs
        value={tab}
        onChange={(value) => go({ ...NOTHING_OPEN, panel: (value ?? "snapshots") as PanelTab })}
        className="panel-tabs"
        keepMounted={false}
      >
        <Tabs.List px="md">
          {tabs.map((one) => (
            <Tabs.Tab key={one} value={one}>
              {TITLES[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {!tabs.includes(tab) ? (
          <div className="panel-body">
            <EmptyNote title="You lack permission.">
              {TITLES[tab]} need the right <code>jobs:read</code>. An admin can grant it.
            </EmptyNote>
          </div>
        ) : overview.isError && asProblem(overview.error).status !== 0 ? (
          <div className="panel-body">
            <ProblemNote error={overview.error} onRetry={() => overview.refetch()} />
          </div>
        ) : (
          tabs.map((one) => (
            <Tabs.Panel
              key={one}
              value={one}
              className="panel-body"
              {...(one === tab && { tabIndex: -1, "data-focus-rest": true })}
            >
              <CatchBoundary getResetKey={() => JSON.stringify(search)} errorComponent={PartProblem}>
                <Suspense fallback={<LateSkeleton />}>
                  {one === "snapshots" && <SnapshotsTab />}
                  {one === "history" && <HistoryTab />}
                  {one === "jobs" && <JobsTab />}
                  {one === "settings" && <SettingsTab />}
                </Suspense>
              </CatchBoundary>
            </Tabs.Panel>
          ))
        )}
      </Tabs>
    </Drawer>
  );
}

/** Escape closes the panel, but only where nothing that lies over it wants the key. */
function useEscape(close: () => void) {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    let isMine = false;
    // Looked at before anybody else has the key: a dialog that it closes may be gone when it comes here.
    function look(event: KeyboardEvent) {
      const isCovered = visible('[role="dialog"]') > 1;
      const isChoosing = visible('[role="menu"], [role="listbox"]') > 0;
      const isEditing = event.target instanceof Element && event.target.closest(".cm-editor") !== null;
      isMine = event.key === "Escape" && !isCovered && !isChoosing && !isEditing;
    }
    function act(event: KeyboardEvent) {
      if (isMine && !event.defaultPrevented) latest.current();
    }
    window.addEventListener("keydown", look, true);
    window.addEventListener("keydown", act);
    return () => {
      window.removeEventListener("keydown", look, true);
      window.removeEventListener("keydown", act);
    };
  }, []);
}

function visible(selector: string): number {
  return [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility()).length;
}

/**
 * The bar that marks a panel which shows the past: which moment, that nothing can be changed, and the way
 * back.
 */
function PastBar() {
  const { place, version, go } = usePanel();
  const { data } = useQuery({ ...overviewQuery(place, version), enabled: version !== undefined });
  if (version === undefined) return null;
  return (
    <div className="past-bar" role="status">
      <IconClock size={16} />
      <span>
        As of {data?.timestamp ? `${exactText(data.timestamp)} (version ${version})` : `version ${version}`},
        read only
      </span>
      <Button size="compact-xs" onClick={() => go({ v: undefined })}>
        Back to now
      </Button>
    </div>
  );
}
