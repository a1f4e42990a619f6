// How a job looks in a list.
import { Badge } from "@mantine/core";
import type { Job, JobStatus as Status } from "@/api/types";
import { counted, durationText } from "@/parts/formats";
import type { Column } from "@/parts/VirtualGrid";
import { Changes, DATED, Moment } from "@/parts/values";
import { changesOf, otherEffectsOf, reasonOf, scriptText, secondsOf } from "./job-facts";
import "./jobs.css";

const COLOURS: Record<Job["status"], string> = {
  queued: "gray",
  running: "blue",
  succeeded: "green",
  held: "yellow",
  failed: "red",
  cancelled: "gray",
  timed_out: "red",
  dead: "red",
};

export const STATUSES = Object.keys(COLOURS) as Status[];

export function statusText(status: Status): string {
  return status.replace("_", " ");
}

export function JobStatus({ status }: { status: Job["status"] }) {
  return (
    <Badge size="sm" variant="outline" color={COLOURS[status]} className="job-status">
      {statusText(status)}
    </Badge>
  );
}

/** The columns of a list of jobs; without that of who submitted them where nobody is named. */
export function jobColumns(jobs: readonly Job[]): readonly Column<Job>[] {
  const isNamed = jobs.some((job) => job.schedule ?? job.submitted_by);
  return JOB_COLUMNS.filter((column) => isNamed || column.id !== "who");
}

const JOB_COLUMNS: readonly Column<Job>[] = [
  { id: "status", header: "Status", width: "88px", cell: (job) => <JobStatus status={job.status} /> },
  {
    id: "script",
    header: "Script",
    width: "minmax(64px, 1fr)",
    cell: (job) => <span title={job.job_id}>{scriptText(job)}</span>,
  },
  {
    id: "result",
    header: "Result",
    width: "minmax(54px, 1.8fr)",
    cell: result,
  },
  {
    id: "who",
    header: "By",
    width: "minmax(60px, 0.6fr)",
    isExtra: true,
    cell: (job) => job.schedule ?? job.submitted_by,
  },
  {
    id: "job",
    header: "Job",
    width: "minmax(60px, 0.6fr)",
    isExtra: true,
    cell: (job) => (
      <span className="mono" title={job.job_id}>
        {job.job_id}
      </span>
    ),
  },
  {
    id: "took",
    header: "Took",
    width: "clamp(46px, 8cqi - 20px, 72px)",
    align: "right",
    isExtra: true,
    share: 80,
    cell: took,
  },
  {
    id: "created",
    header: "Submitted",
    width: DATED,
    align: "right",
    isExtra: true,
    share: 240,
    cell: (job) => <Moment at={job.created} isDated />,
  },
];

function result(job: Job) {
  const changes = changesOf(job);
  const reason = reasonOf(job);
  if (reason)
    return (
      <span className="job-reason" title={reason}>
        {reason}
      </span>
    );
  const { columns, files } = otherEffectsOf(job);
  const others = [
    columns.length > 0 && counted(columns.length, "column"),
    files.length > 0 && counted(files.length, "file"),
  ];
  const told = others.filter(Boolean).join(", ");
  if (changes || told)
    return (
      <span title={[...columns, ...files].join(", ") || undefined}>
        {changes && <Changes counts={changes} />}
        {changes && told && ", "}
        {told}
      </span>
    );
  if (job.status !== "succeeded") return null;
  return <span className="dim">{job.dry_run ? "nothing would change" : "nothing changed"}</span>;
}

function took(job: Job) {
  const seconds = secondsOf(job);
  return seconds === undefined ? null : durationText(seconds);
}
