// Ctrl+K: a part of a tenant's id, a stream, a file, a page, a job's id, a row's key or a text in it, and be there.
import { Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { address, type Place, tenantAddress, tenantKey, withQuery } from "@/api/client";
import { allJobsQuery, oneQuery, overviewQuery, tenantsQuery, useList } from "@/api/queries";
import type { FilePage } from "@/api/types";
import { keyText } from "@/history/versions";
import { PAGES } from "@/navigation/pages";
import { useOpenTenant } from "@/navigation/panel";
import type { PanelSearch } from "@/navigation/search";
import { Dialog } from "@/parts/dialogs";
import { counted } from "@/parts/formats";
import { useMay } from "@/session/session";
import { conditionText } from "@/streams/conditions";

export function Palette(props: { onClose: () => void; environment: string }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState<string>();
  const { goals, search } = useGoals(props.environment, text);
  const list = useId();
  const shown = useRef<HTMLDivElement>(null);
  // By its id: rows that come in meanwhile move what is below them.
  const chosen = Math.max(
    0,
    goals.findIndex((goal) => goal.id === active),
  );

  useEffect(() => {
    shown.current?.querySelector(`[data-place="${chosen}"]`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);

  function go(goal: Goal | undefined) {
    if (!goal) return;
    props.onClose();
    goal.open();
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === "ArrowDown") setActive(goals[(chosen + 1) % goals.length]?.id);
    else if (event.key === "ArrowUp") setActive(goals[(chosen - 1 + goals.length) % goals.length]?.id);
    else if (event.key === "Enter") go(goals[chosen]);
    else return;
    event.preventDefault();
  }

  return (
    <Dialog onClose={props.onClose} title="Search" size="lg">
      <TextInput
        // The dialog gives the focus away a moment later, and what is typed until then must not be lost.
        autoFocus
        data-autofocus
        role="combobox"
        aria-label="Tenant, stream, file, job, page, key or text"
        aria-expanded={goals.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={goals[chosen] && `${list}-${chosen}`}
        placeholder="acme, acme/Invoice, job-4711, 007"
        autoComplete="off"
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setActive(undefined);
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={shown} id={list} className="jump-list" role="listbox" aria-label="Found">
        {goals.map((goal, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the combobox
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the combobox
          <div
            key={goal.id}
            id={`${list}-${place}`}
            data-place={place}
            role="option"
            aria-selected={place === chosen}
            className="jump-goal"
            data-active={place === chosen || undefined}
            onClick={() => go(goal)}
          >
            <span className="jump-kind">{goal.kind}</span> {goal.label}
          </div>
        ))}
      </div>
      <Text c="dimmed" role="status">
        {statusText(props.environment, text, goals.length, search)}
      </Text>
    </Dialog>
  );
}

function statusText(environment: string, text: string, count: number, search: Search): string {
  const tenants = search.progress?.tenants ?? 0;
  const searched = `${counted(tenants, "tenant")} searched`;
  if (search.state === "looking") return tenants ? `Searching rows: ${searched}` : "Searching rows";
  if (search.state === "failed") return "The row search failed. Keep typing to try again.";
  if (text && count === 0) return `Nothing in ${environment} matches.`;
  if (search.progress?.unreadable) return `${searched}, ${search.progress.unreadable} of them damaged.`;
  if (search.progress && !search.progress.is_whole)
    return `${searched}; there may be more rows. Enter more characters to narrow the search.`;
  return "";
}

const EACH_MAX = 8;
const FILES_MAX = 1000;
interface Goal {
  id: string;
  kind: "page" | "tenant" | "stream" | "file" | "job" | "row";
  label: string;
  open: () => void;
}

/**
 * What the palette finds: pages, tenants, streams, files, jobs, and rows by their key. Rows are looked for
 * in the tenant that is named or open, and without one in all of the environment.
 */
function useGoals(environment: string, text: string): { goals: Goal[]; search: Search } {
  const may = useMay();
  const navigate = useNavigate();
  const openTenant = useOpenTenant();
  const { tenant: open } = useParams({ strict: false });
  const slash = text.indexOf("/");
  const { entries: ids } = useList(tenantsQuery(environment), (page) => page.tenants);
  // `acme/Invoice` is of acme; without a tenant's id before a slash all is of the one that is open.
  const named = slash < 0 ? undefined : ids.find((id) => id === text.slice(0, slash));
  const part = named === undefined ? text : text.slice(slash + 1);
  const of = named ?? open;
  const place = { environment, tenant: of ?? "" };
  const overview = useQuery({ ...overviewQuery(place), enabled: of !== undefined });
  const streams = overview.data?.streams ?? [];
  const files = useFiles(place, of !== undefined && part !== "");
  const canSearch = may("snapshots:read") && (of !== undefined || may("tenants:read"));
  const search = useFoundRows(environment, of, canSearch ? part.trim() : "");
  const wanted = allJobsQuery(environment, { jobId: part, tenant: named });
  const enabled = part !== "" && may("jobs:read");
  const { entries: jobs } = useList(wanted, (page) => page.jobs, { enabled });

  function goal(kind: Goal["kind"], tenant: string, name: string, search: PanelSearch): Goal {
    return {
      id: `${kind} ${tenant} ${name}`,
      kind,
      label: name ? `${tenant} / ${name}` : tenant,
      open: () => openTenant({ environment, tenant }, search),
    };
  }

  const goals: Goal[] = jobs
    .slice(0, EACH_MAX)
    .map((job) => goal("job", job.tenant, job.job_id, { panel: "jobs", job: job.job_id }));
  if (of !== undefined && (named !== undefined || part !== "")) {
    for (const { stream } of streams.filter((one) => contains(one.stream, part)).slice(0, EACH_MAX))
      goals.push(goal("stream", of, stream, { stream }));
    for (const path of files.filter((one) => part !== "" && contains(one, part)).slice(0, EACH_MAX))
      goals.push(goal("file", of, path, { file: path }));
  }
  const rows = search.rows.map((row, at) => ({
    row,
    ...goal("row", row.tenant, rowLabel(row), rowPlace(row)),
    id: `row ${at}`,
  }));
  // A key is what was meant; a text may be in many rows.
  goals.push(...rows.filter(({ row }) => row.column in row.key));
  if (named === undefined) {
    for (const id of ids.filter((one) => contains(one, text)).slice(0, EACH_MAX))
      goals.push(goal("tenant", id, "", {}));
    for (const page of PAGES.filter((one) => may(one.scope) && contains(one.label, text)))
      goals.push({
        id: `page ${page.to}`,
        kind: "page",
        label: page.label,
        open: () => void navigate({ to: page.to, search: { env: environment } as never }),
      });
  }
  goals.push(...rows.filter(({ row }) => !(row.column in row.key)));
  return { goals, search };
}

/** The paths of a tenant's files, of the first 1,000. */
function useFiles(place: Place, isWanted: boolean): readonly string[] {
  const query = { recursive: true, limit: FILES_MAX };
  const paths = oneQuery<FilePage>(
    [...tenantKey(place), "paths"],
    `${tenantAddress(place)}/files`,
    query,
    30_000,
  );
  const { data } = useQuery({ ...paths, enabled: isWanted });
  return data?.files.map((file) => file.path) ?? [];
}

function keyOf(row: FoundRow): string {
  return keyText(row.key, Object.keys(row.key));
}

/** The row by its key, and where the text is in another column that column and its value. */
function rowLabel(row: FoundRow): string {
  const isKeyed = Object.keys(row.key).length > 0;
  const name = isKeyed ? `${row.stream} / ${keyOf(row)}` : row.stream;
  return row.column in row.key ? name : `${name}: ${row.column} ${row.value}`;
}

/** The row's sheet; of a stream without a key the rows with that value. */
function rowPlace(row: FoundRow): PanelSearch {
  const { stream } = row;
  if (Object.keys(row.key).length > 0) return { stream, row: keyOf(row) };
  return { stream, where: [conditionText(row.column, "=", row.value)] };
}

function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}

const TYPED_MS = 250;
const LETTERS_MIN = 2;

interface FoundRow {
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

interface Search {
  rows: readonly FoundRow[];
  progress: Progress | null;
  state: "idle" | "looking" | "ended" | "failed";
}

const IDLE: Search = { rows: [], progress: null, state: "idle" };

/** Looks in one tenant, or without one in all of the environment that the caller may read. */
function useFoundRows(environment: string, tenant: string | undefined, text: string): Search {
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
