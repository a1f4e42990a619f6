// One job: its state, what became of it, the version that it made, and its log as it is written.
import { Button, Group, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { cancelJob, repeatJob } from "@/api/changes";
import { notebookAddress, tenantKey } from "@/api/place";
import { jobQuery } from "@/api/queries";
import { CopyText } from "@/parts/CopyText";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { tellProblem } from "@/parts/toasts";
import { useMay } from "@/session/session";
import { save } from "@/snapshots/download";
import { NOTHING_OPEN, usePanel } from "@/tenants/panel";
import { JobStatus } from "./jobColumns";
import { useJobLog } from "./useJobLog";

interface JobError {
  problem?: string;
  cause?: string;
  remedy?: string;
}

export function JobDetail({ jobId }: { jobId: string }) {
  const { place, go } = usePanel();
  const may = useMay();
  const client = useQueryClient();
  const query = jobQuery(place, jobId);
  const job = useQuery(query);
  const refresh = () => client.invalidateQueries({ queryKey: query.queryKey });
  const log = useJobLog(place, jobId, refresh);
  const cancelling = useMutation({ mutationFn: () => cancelJob(place, jobId), onSettled: refresh });
  const repeating = useMutation({
    mutationFn: () => repeatJob(place, jobId),
    onSuccess: async (again) => {
      await client.invalidateQueries({ queryKey: [...tenantKey(place), "jobs"] });
      go({ job: again.job_id });
    },
    onError: tellProblem,
  });
  // An import's file is gone with the import: there is nothing to run again.
  const isRepeatable = job.data?.finished != null && !jobId.startsWith("import-");
  const version = job.data?.outcome?.tenant_version;
  const error = job.data?.outcome?.error as JobError | null | undefined;
  return (
    <>
      <Group gap="sm">
        <Button size="compact-sm" variant="default" onClick={() => go({ job: undefined })}>
          All jobs
        </Button>
        <CopyText text={jobId} label="job id" />
        {job.data && <JobStatus status={job.data.status} />}
        {job.data && (
          <Text size="xs" c="dimmed">
            submitted <Moment at={job.data.created} />
          </Text>
        )}
        <Group gap="xs" ml="auto">
          {typeof version === "number" && version > 0 && (
            <Button
              size="compact-sm"
              variant="default"
              onClick={() => go({ ...NOTHING_OPEN, panel: "history", before: version - 1, after: version })}
            >
              What it changed
            </Button>
          )}
          {job.data?.outcome?.has_notebook === true && (
            <Button size="compact-sm" variant="default" onClick={() => save(notebookAddress(place, jobId))}>
              Executed notebook
            </Button>
          )}
          {isRepeatable && may("jobs:run") && (
            <Button
              size="compact-sm"
              variant="default"
              loading={repeating.isPending}
              onClick={() => repeating.mutate()}
            >
              Run again
            </Button>
          )}
          {job.data && job.data.finished === null && may("jobs:run") && (
            <Button
              size="compact-sm"
              color="red"
              variant="outline"
              loading={cancelling.isPending}
              onClick={() => cancelling.mutate()}
            >
              Cancel
            </Button>
          )}
        </Group>
      </Group>
      {job.isPending && <LateSkeleton lines={3} />}
      {job.isError && <ProblemNote error={job.error} onRetry={() => job.refetch()} />}
      {error?.problem && (
        <Text size="sm" c="var(--mantine-color-error)">
          {[error.problem, error.cause, error.remedy].filter(Boolean).join(" ")}
        </Text>
      )}
      <Log lines={log} />
    </>
  );
}

function Log({ lines }: { lines: readonly string[] }) {
  const place = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new line scrolls, but not away from where one reads
  useEffect(() => {
    if (isAtEnd.current) place.current?.scrollTo(0, place.current.scrollHeight);
  }, [lines]);
  return (
    <pre
      ref={place}
      className="log"
      role="log"
      aria-label="Log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it must scroll by keyboard
      tabIndex={0}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < 24;
      }}
    >
      {lines.length === 0 ? "Nothing written yet." : lines.join("\n")}
    </pre>
  );
}
