// Job groups: one script for many tenants, by one request.
import { queryOptions } from "@tanstack/react-query";
import { address, change, get } from "@/api/client";
import { allJobsKey } from "@/api/queries";
import type { GroupDecision, GroupEffects, JobGroup, JobStatus, NewJobGroup } from "@/api/types";
import { countText } from "@/parts/formats";

const SHOWN: readonly JobStatus[] = [
  "succeeded",
  "held",
  "running",
  "queued",
  "cancelled",
  "failed",
  "timed_out",
  "dead",
];
const FAILED: readonly JobStatus[] = ["failed", "timed_out", "dead"];
const OPEN: readonly JobStatus[] = ["queued", "running"];

export function groupQuery(environment: string, group: string) {
  return queryOptions({
    queryKey: [...allJobsKey(environment), "group", group],
    queryFn: ({ signal }) =>
      get<JobGroup>(address`/environments/${environment}/job-groups/${group}`, {}, signal),
  });
}

export function effectsQuery(environment: string, group: string) {
  return queryOptions({
    queryKey: [...allJobsKey(environment), "effects", group],
    queryFn: ({ signal }) =>
      get<GroupEffects>(address`/environments/${environment}/job-groups/${group}/effects`, {}, signal),
  });
}

export function runGroup(environment: string, order: NewJobGroup): Promise<JobGroup> {
  return change("POST", address`/environments/${environment}/job-groups`, "a new thing", { body: order });
}

/** Publishes or discards a group's held jobs (`passed`: only those that no check holds), or cancels the others. */
export function decideGroup(
  environment: string,
  group: string,
  how: "publish" | "discard" | "cancel",
  passed: boolean,
): Promise<GroupDecision> {
  return change("POST", address`/environments/${environment}/job-groups/${group}/${how}`, "of the queue", {
    query: { passed: passed || undefined },
  });
}

export const failedOf = (group: JobGroup) => sum(group, FAILED);
export const openOf = (group: JobGroup) => sum(group, OPEN);

/** `214 succeeded, 4 running, 2 failed`. */
export function countsText(group: JobGroup): string {
  return SHOWN.filter((status) => group.counts[status])
    .map((status) => `${countText(group.counts[status] ?? 0)} ${status.replace("_", " ")}`)
    .join(", ");
}

export function tenantsText(group: JobGroup): string {
  return `${countText(group.jobs)} ${group.jobs === 1 ? "tenant" : "tenants"}`;
}

function sum(group: JobGroup, statuses: readonly JobStatus[]): number {
  return statuses.reduce((all, status) => all + (group.counts[status] ?? 0), 0);
}
