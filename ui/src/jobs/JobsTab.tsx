// A tenant's jobs, and one of them with its live log.
import { Button, Group, Stack } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { runJob } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { jobsQuery } from "@/api/queries";
import { useLookAgain } from "@/events/live";
import { usePanel } from "@/navigation/panel";
import { Dialog } from "@/parts/Dialog";
import { EmptyNote } from "@/parts/EmptyNote";
import { FormFooter } from "@/parts/FormFooter";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { VirtualGrid } from "@/parts/VirtualGrid";
import { useMay } from "@/session/session";
import { JobDetail } from "./JobDetail";
import { JOB_COLUMNS } from "./jobColumns";
import { NO_SCRIPT, ScriptFields } from "./ScriptFields";

export default function JobsTab() {
  const { search } = usePanel();
  return search.job ? <JobDetail jobId={search.job} /> : <JobList />;
}

function JobList() {
  const { place, go } = usePanel();
  const may = useMay();
  const [isRunning, setRunning] = useState(false);
  const list = useInfiniteQuery({ ...jobsQuery(place), refetchInterval: useLookAgain() });
  const jobs = useMemo(() => list.data?.pages.flatMap((page) => page.jobs) ?? [], [list.data]);
  if (list.isPending) return <LateSkeleton />;
  if (list.isLoadingError) return <ProblemNote error={list.error} onRetry={() => list.refetch()} />;
  return (
    <>
      {may("jobs:run") && (
        <Group justify="flex-end">
          <Button size="xs" variant="default" onClick={() => setRunning(true)}>
            Run a script
          </Button>
        </Group>
      )}
      {jobs.length === 0 ? (
        <EmptyNote
          title={`No job for ${place.tenant} yet.`}
          example={`freezeframe job submit etl.py --tenant ${place.tenant}`}
        >
          The tenant's jobs in the queue are listed here.
        </EmptyNote>
      ) : (
        <VirtualGrid
          label="Jobs"
          rows={jobs}
          columns={JOB_COLUMNS}
          keyOf={(job) => job.job_id}
          onOpen={(job) => go({ job: job.job_id })}
          onNearEnd={() => {
            if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage();
          }}
        />
      )}
      {isRunning && <RunDialog onClose={() => setRunning(false)} />}
    </>
  );
}

function RunDialog({ onClose }: { onClose: () => void }) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  const [choice, setChoice] = useState(NO_SCRIPT);
  const running = useMutation({
    mutationFn: (script: string) => runJob(place, { script, parameters: choice.parameters }),
    onSuccess: async (job) => {
      onClose();
      await client.invalidateQueries({ queryKey: [...tenantKey(place), "jobs"] });
      go({ job: job.job_id });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (choice.script !== null && !running.isPending) running.mutate(choice.script);
  }
  return (
    <Dialog onClose={onClose} title="Run a script">
      <form onSubmit={submit}>
        <Stack>
          <ScriptFields choice={choice} onChange={setChoice} isFirst />
          <FormFooter sending={running} verb="Run" onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
