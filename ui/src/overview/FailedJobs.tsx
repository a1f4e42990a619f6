// The jobs that failed, grouped by their reason, each with its tenant, and the way to run those of a reason again.
import { Button } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { repeatJob } from "@/api/changes";
import type { FailedJob } from "@/api/types";
import { JobStatus } from "@/jobs/jobColumns";
import { counted, countText } from "@/parts/formats";
import { tell, tellProblem } from "@/parts/toasts";
import { Moment } from "@/parts/values";
import { useMay } from "@/session/session";
import { type Reason, reasonsOf } from "./reasons";

const NAMED_MAX = 20;

export function FailedJobs({ jobs, environment }: { jobs: readonly FailedJob[]; environment: string }) {
  return (
    <section className="overview-part overview-failed" aria-label="Failed jobs">
      <h2>
        Failed jobs <span className="overview-count number">{countText(jobs.length)}</span>
        <Link className="text-link overview-all" to="/jobs" search={{ env: environment, status: "failed" }}>
          All
        </Link>
      </h2>
      {reasonsOf(jobs).map((reason) => (
        <OfReason key={reason.id} reason={reason} environment={environment} />
      ))}
    </section>
  );
}

function OfReason({ reason, environment }: { reason: Reason; environment: string }) {
  const may = useMay();
  const client = useQueryClient();
  const again = reason.jobs.filter((job) => job.is_repeatable);
  const repeating = useMutation({
    mutationFn: async () => {
      for (const { tenant, job_id } of again) await repeatJob({ environment, tenant }, job_id);
    },
    onSuccess: () => tell(`${counted(again.length, "job")} queued.`),
    onError: tellProblem,
    onSettled: () => client.invalidateQueries(),
  });
  const [newest] = reason.jobs;
  return (
    <article className="overview-reason" aria-label={reason.text}>
      <div>
        <JobStatus status={reason.status} /> <span className="job-reason">{reason.text}</span>
        {newest && <Moment at={newest.finished} className="dim" isDated />}
        {again.length > 0 && may("jobs:run") && (
          <Button size="compact-xs" loading={repeating.isPending} onClick={() => repeating.mutate()}>
            {again.length === 1 ? "Run again" : `Run again for these ${countText(again.length)}`}
          </Button>
        )}
      </div>
      <div className="overview-tenants">
        {reason.jobs.slice(0, NAMED_MAX).map(({ tenant, job_id, finished }) => (
          <Link
            key={`${tenant} ${job_id}`}
            className="text-link"
            title={`${job_id}, ${finished}`}
            to="/tenants/$tenant"
            params={{ tenant }}
            search={{ env: environment, panel: "jobs", job: job_id }}
          >
            {tenant}
          </Link>
        ))}
        {reason.jobs.length > NAMED_MAX && `and ${countText(reason.jobs.length - NAMED_MAX)} more`}
      </div>
    </article>
  );
}
