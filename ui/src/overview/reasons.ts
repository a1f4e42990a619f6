// Failed jobs by their reason (pure).
import type { FailedJob } from "@/api/types";

export interface Reason {
  id: string;
  text: string;
  status: FailedJob["status"];
  /** The newest first. */
  jobs: readonly FailedJob[];
}

/** The reasons, the one with most jobs first; numbers and quoted names in them make no other reason. */
export function reasonsOf(jobs: readonly FailedJob[]): Reason[] {
  const found = new Map<string, FailedJob[]>();
  for (const job of jobs) {
    const id = `${job.status} ${job.error_code} ${job.error.replace(/\d+|"[^"]*"|'[^']*'/g, "*")}`;
    found.set(id, [...(found.get(id) ?? []), job]);
  }
  return [...found]
    .map(([id, those]) => ({
      id,
      text: those[0]?.error || "No reason is known.",
      status: those[0]?.status ?? "failed",
      jobs: those,
    }))
    .sort((one, other) => other.jobs.length - one.jobs.length);
}
