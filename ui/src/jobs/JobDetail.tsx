// One job: its state, what became of it, the version that it made, and its log as it is written.
import { Button, Group, SegmentedControl } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { notebookAddress } from "@/api/client";
import { asProblem, MISSING } from "@/api/problem";
import { historyQuery, jobQuery, useList } from "@/api/queries";
import { UndoDialog } from "@/history/Undo";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { save } from "@/parts/page";
import { EmptyNote, LateSkeleton, Placeholder } from "@/parts/states";
import { CopyText } from "@/parts/values";
import { useMay } from "@/session/session";
import { DryRunRows } from "./DryRunRows";
import { JobFacts } from "./JobFacts";
import { given, wouldChange } from "./job-facts";
import { JobStatus } from "./jobColumns";
import { ReplayButton } from "./ReplayButton";
import { RunDialog } from "./RunDialog";
import { canBeReplayed, canBeTried, isOpen, useJobActions } from "./useJobActions";
import { useJobLog } from "./useJobLog";
import "./jobs.css";

const NotebookView = lazy(() => import("./NotebookView"));

export function JobDetail({ jobId }: { jobId: string }) {
  const { place, search, go } = usePanel();
  const may = useMay();
  const [isChanging, setChanging] = useState(false);
  const client = useQueryClient();
  const query = jobQuery(place, jobId);
  const job = useQuery(query);
  const refresh = () => client.invalidateQueries({ queryKey: query.queryKey });
  const log = useJobLog(place, jobId, job.data !== undefined, refresh);
  const { repeat, end, isBusy } = useJobActions((again) => go({ job: again.job_id, show: undefined }));
  const hasNotebook = job.data?.outcome?.has_notebook === true;
  const isNotebook = hasNotebook && search.show === "notebook";
  const version = job.data?.outcome?.tenant_version;
  if (job.isLoadingError && asProblem(job.error).status === MISSING) return <ElsewhereJob jobId={jobId} />;
  return (
    <>
      <Group gap="sm">
        <AllJobs />
        <CopyText text={jobId} label="job id" />
        {job.data && <JobStatus status={job.data.status} />}
        <Group gap="xs" ml="auto">
          {typeof version === "number" && <WhatItChanged version={version} jobId={jobId} />}
          {job.data && canBeReplayed(job.data) && may("jobs:run") && <ReplayButton job={job.data} />}
          {hasNotebook && (
            <Button onClick={() => save(notebookAddress(place, jobId))}>Download notebook</Button>
          )}
          {job.data?.is_repeatable && may("jobs:run") && (
            <Button loading={isBusy} onClick={() => repeat(place, jobId)}>
              Run again
            </Button>
          )}
          {job.data && canBeTried(job.data) && may("jobs:run") && (
            <Button
              loading={isBusy}
              onClick={() => repeat(place, jobId, true)}
              title="Run it without a commit, and show what it would change"
            >
              Dry run
            </Button>
          )}
          {job.data?.is_repeatable && may("jobs:run") && (
            <Button onClick={() => setChanging(true)}>Run again with changes…</Button>
          )}
          {job.data && isOpen(job.data) && may("jobs:run") && (
            <Button
              color="red"
              variant="outline"
              loading={isBusy}
              onClick={() => end(place, jobId, "cancel")}
            >
              Cancel
            </Button>
          )}
          {job.data?.status === "held" && may("jobs:run") && (
            <>
              <Button
                loading={isBusy}
                onClick={() => end(place, jobId, "publish")}
                title="Commit just what is shown here; refused if another job changed it meanwhile"
              >
                Publish
              </Button>
              <Button
                color="red"
                variant="outline"
                loading={isBusy}
                onClick={() => end(place, jobId, "discard")}
              >
                Discard
              </Button>
            </>
          )}
        </Group>
      </Group>
      {job.data ? <JobFacts job={job.data} /> : <Placeholder query={job} lines={3} />}
      {job.data && wouldChange(job.data) && may("snapshots:read") && (
        <DryRunRows place={place} jobId={jobId} />
      )}
      {hasNotebook && (
        <SegmentedControl
          size="xs"
          aria-label="What to show"
          className="tight"
          value={isNotebook ? "notebook" : "log"}
          onChange={(value) => go({ show: value === "notebook" ? "notebook" : undefined })}
          data={[
            { value: "log", label: "Log" },
            { value: "notebook", label: "Executed notebook" },
          ]}
        />
      )}
      {isNotebook ? (
        <Suspense fallback={<LateSkeleton />}>
          <NotebookView place={place} jobId={jobId} />
        </Suspense>
      ) : (
        <Log lines={log} />
      )}
      {isChanging && job.data && (
        <RunDialog
          initial={{ script: job.data.script, parameters: given(job.data.parameters) }}
          onClose={() => setChanging(false)}
        />
      )}
    </>
  );
}

/** A job that made a version of the tenant without this service's queue, or one that never was. */
function ElsewhereJob({ jobId }: { jobId: string }) {
  const { place } = usePanel();
  const { query: history, entries } = useList(historyQuery(place, { jobId }), (page) => page.versions);
  const version = entries[0]?.version;
  return (
    <>
      <Group gap="sm">
        <AllJobs />
        <CopyText text={jobId} label="job id" />
        <Group gap="xs" ml="auto">
          {version !== undefined && <WhatItChanged version={version} jobId={jobId} />}
        </Group>
      </Group>
      {!history.data ? (
        <Placeholder query={history} lines={3} />
      ) : version === undefined ? (
        <EmptyNote title={`${place.tenant} has no job ${jobId}.`}>
          It may belong to another tenant, or be deleted: the queue deletes old jobs.
        </EmptyNote>
      ) : (
        <EmptyNote title="This job did not run in this service.">
          It created version {version} from a script or <code>freezeframe run</code>. Its log and notebook are
          on the machine that ran it.
        </EmptyNote>
      )}
    </>
  );
}

function AllJobs() {
  const { go } = usePanel();
  return <Button onClick={() => go({ job: undefined, show: undefined })}>All jobs</Button>;
}

/** Before version 0 there is nothing to compare with: what it brought is shown as of then. */
function WhatItChanged({ version, jobId }: { version: number; jobId: string }) {
  const { go } = usePanel();
  const may = useMay();
  const [isUndoing, setUndoing] = useState(false);
  return (
    <>
      <Button
        onClick={() =>
          version > 0
            ? go({ ...NOTHING_OPEN, panel: "history", before: version - 1, after: version })
            : go({ ...NOTHING_OPEN, panel: "snapshots", v: version })
        }
      >
        What it changed
      </Button>
      {may("snapshots:write") && <Button onClick={() => setUndoing(true)}>Undo this job…</Button>}
      {isUndoing && (
        <UndoDialog what={`job ${jobId}`} order={{ version }} onClose={() => setUndoing(false)} />
      )}
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
      {lines.length === 0 ? "No output yet." : lines.join("\n")}
    </pre>
  );
}
