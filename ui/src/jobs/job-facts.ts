// What a job's answer says of its result (pure).
import type { Job } from "@/api/types";

interface Counts {
  inserted: number;
  updated: number;
  deleted: number;
}

interface JobError {
  code?: string;
  problem?: string;
  cause?: string;
  remedy?: string;
}

interface StreamEffect extends Counts {
  columns_added: Record<string, string>;
  columns_dropped: Record<string, string>;
  columns_retyped: Record<string, [string, string]>;
}

interface DryRun {
  streams: Record<string, StreamEffect>;
  files: Record<string, { fate: string }>;
}

interface Outcome {
  error?: JobError | null;
  receipt?: {
    streams?: Record<string, Counts>;
    files_written?: readonly string[];
    files_deleted?: readonly string[];
  } | null;
  dry_run?: DryRun | null;
}

const outcomeOf = (job: Job) => job.outcome as Outcome | null;

export function errorOf(job: Job): JobError | undefined {
  return outcomeOf(job)?.error ?? undefined;
}

/** Whether it tells what would change: a dry run that succeeded, or a job that is held. */
export function wouldChange(job: Job): boolean {
  return job.status === "held" || (job.dry_run && job.status === "succeeded");
}

/** The streams whose rows the job changed, by name. */
export function streamsOf(job: Job): [string, Counts][] {
  const streams = Object.entries(outcomeOf(job)?.receipt?.streams ?? {});
  return streams.filter(([, counts]) => counts.inserted + counts.updated + counts.deleted > 0);
}

/** What a job changed besides rows, or a dry run would: columns of streams, and files. */
export function otherEffectsOf(job: Job): { columns: string[]; files: string[] } {
  const found = outcomeOf(job)?.dry_run;
  const columns = Object.entries(found?.streams ?? {}).flatMap(([stream, effect]) => [
    ...Object.entries(effect.columns_added).map(([name, kind]) => `+ ${stream}.${name} (${kind})`),
    ...Object.keys(effect.columns_dropped).map((name) => `- ${stream}.${name}`),
    ...Object.entries(effect.columns_retyped).map(
      ([name, [before, after]]) => `${stream}.${name}: ${before} → ${after}`,
    ),
  ]);
  const { files_written = [], files_deleted = [] } = outcomeOf(job)?.receipt ?? {};
  const files = [
    ...Object.entries(found?.files ?? {}).map(([path, { fate }]) => `${path} (${fate})`),
    ...files_written.map((path) => `${path} (written)`),
    ...files_deleted.map((path) => `${path} (deleted)`),
  ];
  return { columns, files };
}

export function changesOf(job: Job): Counts | undefined {
  const streams = streamsOf(job);
  if (streams.length === 0) return undefined;
  const sum = (of: (counts: Counts) => number) => streams.reduce((all, [, counts]) => all + of(counts), 0);
  return {
    inserted: sum((counts) => counts.inserted),
    updated: sum((counts) => counts.updated),
    deleted: sum((counts) => counts.deleted),
  };
}

/** Seconds from the start of the last attempt to its end. */
export function secondsOf(job: Job): number | undefined {
  if (!job.started || !job.finished) return undefined;
  return (Date.parse(job.finished) - Date.parse(job.started)) / 1000;
}

export function scriptText(job: Job): string {
  const own = job.script && ` with ${job.script}`;
  const script = job.import_stream
    ? `import ${job.import_stream}`
    : job.replays.length > 0
      ? `replay ${job.replays.join(", ")}${own}`
      : job.script;
  return job.dry_run ? `dry run of ${script}` : script;
}

const FAILURES: readonly Job["status"][] = ["failed", "timed_out", "dead"];

/** The reason of a failure in one line: what the script raised, else the problem; other causes may be logs. */
export function reasonOf(job: Job): string {
  const error = FAILURES.includes(job.status) ? errorOf(job) : undefined;
  const cause = error?.code === "SCRIPT_FAILED" ? error.cause : "";
  return (cause || error?.problem || "").split("\n")[0] ?? "";
}

/** Parameters that have a value, as the fields of a form take them. */
export function given(parameters: Job["parameters"]): Record<string, string | number | boolean> {
  const known = Object.entries(parameters).filter(([, value]) => value !== null);
  return Object.fromEntries(known) as Record<string, string | number | boolean>;
}
