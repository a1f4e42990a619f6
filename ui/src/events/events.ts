// The page's one line to what happens: jobs, new versions of the open tenant, tenants that come and go.
//
// While nobody looks at the page it is let go, for a browser has few lines to a service and many pages.
// Whenever it was away, whatever is on the page is read again.
import { type Query, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { address, type Place, tenantKey, withQuery } from "@/api/client";
import { allJobsKey, overviewQuery, whoQuery } from "@/api/queries";
import { followed } from "@/parts/page";

const GATHERED_MS = 200;
const AGAIN_MS = 15_000;
const LATER_MS = 400;

export function useEvents(environment: string, tenant: string | undefined): void {
  const client = useQueryClient();
  useEffect(() => {
    let line: Line | undefined;
    // After what is to be shown was asked for: that is what one waits for.
    const timer = setTimeout(() => {
      line = new Line(client, environment, tenant);
    }, LATER_MS);
    return () => {
      clearTimeout(timer);
      line?.end();
    };
  }, [client, environment, tenant]);
}

/** Where all lines of this page were cut since the last one was open. */
let wasAway = false;

class Line {
  private source: EventSource | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly jobs: Gathered<string>;

  constructor(
    private readonly client: QueryClient,
    private readonly environment: string,
    private readonly tenant: string | undefined,
  ) {
    this.jobs = new Gathered((names) => this.refreshJobs(names));
    document.addEventListener("visibilitychange", this.onVisibility);
    this.onVisibility();
  }

  end(): void {
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.close();
  }

  private readonly onVisibility = () => {
    if (document.visibilityState === "visible") this.open();
    else {
      wasAway = true;
      this.close();
    }
  };

  private close(): void {
    clearTimeout(this.timer);
    this.jobs.stop();
    this.source?.close();
    this.source = undefined;
  }

  private open(): void {
    this.close();
    const url = withQuery(address`/events`, { environment: this.environment, tenant: this.tenant });
    const source = new EventSource(url);
    this.source = source;
    source.addEventListener("anew", () => {
      setLive(true);
      if (wasAway) void this.client.invalidateQueries();
      wasAway = false;
    });
    source.addEventListener("lost", () => void this.client.invalidateQueries());
    source.addEventListener("job", (event) => {
      const told = JSON.parse(event.data) as { tenant: string; job_id: string };
      this.jobs.add(`${told.tenant}\n${told.job_id}`);
    });
    source.addEventListener("version", (event) => {
      const told = JSON.parse(event.data) as { tenant: string; version: number };
      this.seen({ environment: this.environment, tenant: told.tenant }, told.version);
    });
    source.addEventListener("tenants", () => {
      void this.client.invalidateQueries({ queryKey: ["tenants", this.environment] });
      void this.client.invalidateQueries({ queryKey: ["environments"] });
    });
    source.onerror = () => {
      wasAway = true;
      setLive(false);
      // Whether the service itself is away shows at any answer of its own.
      void this.client.fetchQuery({ ...whoQuery, staleTime: 0 }).catch(() => {});
      // What was refused is not tried again by the browser; what was cut is, at once and again and again.
      if (source.readyState === EventSource.CLOSED) this.timer = setTimeout(() => this.open(), AGAIN_MS);
    };
  }

  private seen(place: Place, version: number): void {
    const overview = this.client.getQueryState(overviewQuery(place).queryKey);
    const isKnown = overview?.data?.version === version;
    // What was answered before the overview may be of an earlier version; what came after it is not.
    void refreshTenant(this.client, place, isKnown ? overview.dataUpdatedAt : undefined);
  }

  private refreshJobs(names: readonly string[]): void {
    void this.client.invalidateQueries({ queryKey: allJobsKey(this.environment) });
    const tenants = new Set<string>();
    for (const name of names) {
      const [tenant = "", jobId = ""] = name.split("\n");
      tenants.add(tenant);
      const key = tenantKey({ environment: this.environment, tenant });
      void this.client.invalidateQueries({ queryKey: [...key, "job", jobId] });
    }
    for (const tenant of tenants) {
      const key = tenantKey({ environment: this.environment, tenant });
      void this.client.invalidateQueries({ queryKey: [...key, "jobs"] });
      void this.client.invalidateQueries({ queryKey: [...key, "summary"] });
    }
  }
}

/** Events come in swarms; what they concern is read once a swarm. */
class Gathered<T> {
  private readonly waiting = new Set<T>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly act: (all: readonly T[]) => void) {}

  add(one: T): void {
    this.waiting.add(one);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const all = [...this.waiting];
      this.waiting.clear();
      this.act(all);
    }, GATHERED_MS);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}

let lastAnswer = Date.now();
const lost = followed<number | undefined>(undefined);

/** Whether the service answers, and when it did last: that is the age of what the page shows. */
export function noteAnswer(): void {
  lastAnswer = Date.now();
  lost.set(undefined);
}

export function noteUnreachable(): void {
  lost.set(lost.get() ?? lastAnswer);
}

/** When the service answered last, in milliseconds, while it does not; else undefined. */
export const useLostSince = lost.useValue;

const LOOKED_EVERY_MS = 4_000;
const live = followed(false);

const setLive = live.set;

/** How often what changes has to be read again: not at all while the service tells of changes. */
export function useLookAgain(): number | false {
  return live.useValue() ? false : LOOKED_EVERY_MS;
}

/** Reads it again; with `before` only what was answered before that moment, in milliseconds. */
export function refreshTenant(client: QueryClient, place: Place, before?: number): Promise<void> {
  const isOld = ({ state }: Query) =>
    before === undefined || (state.data !== undefined && state.dataUpdatedAt < before);
  return client.invalidateQueries({
    queryKey: tenantKey(place),
    predicate: (query) => isOld(query) && mayChange(query),
  });
}

function mayChange(query: Query): boolean {
  return query.observers.length === 0
    ? query.options.queryFn !== undefined && !isOfThePast(query)
    : query.observers.some((one) => one.options.staleTime !== Number.POSITIVE_INFINITY);
}

function isOfThePast(query: Query): boolean {
  const [, , , what, version] = query.queryKey;
  return what === "diff" || what === "row-diff" || typeof version === "number";
}
