// A tenant's jobs, and one of them with its live log.
import { Button, Group } from "@mantine/core";
import { useMemo, useState } from "react";
import { jobsQuery, useList } from "@/api/queries";
import { useLookAgain } from "@/events/events";
import { usePanel } from "@/navigation/panel";
import { EmptyNote, Placeholder } from "@/parts/states";
import { VirtualGrid } from "@/parts/VirtualGrid";
import { useMay } from "@/session/session";
import { CreateSchedule } from "./CreateSchedule";
import { JobDetail } from "./JobDetail";
import { jobColumns } from "./jobColumns";
import { RunDialog } from "./RunDialog";

export default function JobsTab() {
  const { search } = usePanel();
  return search.job ? <JobDetail jobId={search.job} /> : <JobList />;
}

function JobList() {
  const { place, go } = usePanel();
  const may = useMay();
  const [dialog, setDialog] = useState<"run" | "schedule" | null>(null);
  const again = { refetchInterval: useLookAgain() };
  const { query, entries: jobs, more } = useList(jobsQuery(place), (page) => page.jobs, again);
  const columns = useMemo(() => jobColumns(jobs), [jobs]);
  if (!query.data) return <Placeholder query={query} />;
  return (
    <>
      {may("jobs:run") && (
        <Group justify="flex-end" gap="xs">
          <Button size="xs" onClick={() => setDialog("schedule")}>
            Create schedule
          </Button>
          <Button size="xs" onClick={() => setDialog("run")}>
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
          columns={columns}
          keyOf={(job) => job.job_id}
          onOpen={(job) => go({ job: job.job_id })}
          onNearEnd={more}
        />
      )}
      {dialog === "run" && <RunDialog onClose={() => setDialog(null)} />}
      {dialog === "schedule" && <CreateSchedule {...place} onClose={() => setDialog(null)} />}
    </>
  );
}
