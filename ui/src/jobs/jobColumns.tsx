// How a job looks in a list.
import { Badge } from "@mantine/core";
import type { Job, JobStatus as Status } from "@/api/types";
import { durationText } from "@/parts/formats";
import { Moment } from "@/parts/Moment";
import type { Column } from "@/parts/VirtualGrid";
import "./jobs.css";

const COLOURS: Record<Job["status"], string> = {
  queued: "gray",
  running: "blue",
  succeeded: "green",
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

export const JOB_COLUMNS: readonly Column<Job>[] = [
  { id: "status", header: "Status", width: "94px", cell: (job) => <JobStatus status={job.status} /> },
  {
    id: "job",
    header: "Job",
    width: "minmax(70px, 1fr)",
    cell: (job) => (
      <span className="mono" title={job.job_id}>
        {job.job_id}
      </span>
    ),
  },
  { id: "tries", header: "Tries", width: "50px", align: "right", isExtra: true, cell: (job) => job.attempts },
  { id: "took", header: "Took", width: "84px", align: "right", isExtra: true, cell: took },
  {
    id: "created",
    header: "Submitted",
    width: "86px",
    align: "right",
    cell: (job) => <Moment at={job.created} />,
  },
];

function took(job: Job) {
  if (!job.started || !job.finished) return null;
  return durationText((Date.parse(job.finished) - Date.parse(job.started)) / 1000);
}
