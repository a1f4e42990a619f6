// Scripts that are run again and again: when, the next times, paused or run at once.
import { Button } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { address, change, type Place, tenantAddress } from "@/api/client";
import { listQuery, useList } from "@/api/queries";
import type { Job, Schedule, SchedulePage } from "@/api/types";
import { CreateSchedule } from "@/jobs/CreateSchedule";
import { JobStatus } from "@/jobs/jobColumns";
import { ListPage, RowActions } from "@/navigation/ListPage";
import { useOpenTenant } from "@/navigation/panel";
import { ConfirmDialog } from "@/parts/dialogs";
import { exactText } from "@/parts/formats";
import { EmptyNote } from "@/parts/states";
import { tell, tellProblem } from "@/parts/toasts";
import type { Column } from "@/parts/VirtualGrid";
import { Moment } from "@/parts/values";
import { useEnvironment, useMay } from "@/session/session";
import { cronText } from "./cron";

export function SchedulesPage() {
  const environment = useEnvironment();
  const may = useMay();
  const client = useQueryClient();
  const openTenant = useOpenTenant();
  const query = schedulesQuery(environment);
  const list = useList(query, (page) => page.schedules, { refetchInterval: AGAIN_MS });
  const [isCreating, setCreating] = useState(false);
  const [ending, setEnding] = useState<Schedule | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: query.queryKey });
  const change = useMutation({
    mutationFn: ({ act }: { act: () => Promise<unknown> }) => act(),
    onSuccess: () => setEnding(null),
    onError: (error) => ending === null && tellProblem(error),
    onSettled: refresh,
  });
  const run = useMutation({
    mutationFn: (one: Schedule) => runSchedule(placeOf(one), one.name),
    onSuccess: (job) => tell(`${job.tenant}: job ${job.job_id} is queued.`),
    onError: tellProblem,
  });
  const columns = columnsOf(may("jobs:run"), change.isPending || run.isPending, {
    pause: (one) => change.mutate({ act: () => enableSchedule(placeOf(one), one.name, !one.enabled) }),
    run: (one) => run.mutate(one),
    end: setEnding,
  });
  return (
    <ListPage
      title="Schedules"
      noun="schedule"
      list={list}
      columns={columns}
      keyOf={(one) => `${one.tenant} ${one.name}`}
      nameOf={(one) => one.name}
      minWidth={940}
      onOpen={(one) => openTenant({ environment, tenant: one.tenant }, { panel: "jobs" })}
      action={
        may("jobs:run") && (
          <Button variant="filled" size="sm" onClick={() => setCreating(true)}>
            Create schedule
          </Button>
        )
      }
      empty={
        <EmptyNote
          title={`No schedule in ${environment} yet.`}
          example={`freezeframe schedule create nightly etl.py --tenant acme --cron "0 6 * * *"`}
        >
          A schedule runs a script for a tenant at set times. Start a worker to run scheduled jobs.
        </EmptyNote>
      }
    >
      {isCreating && <CreateSchedule environment={environment} onClose={() => setCreating(false)} />}
      {ending && (
        <ConfirmDialog
          title={`Delete ${ending.name}?`}
          verb="Delete"
          sending={change}
          onAct={() => change.mutate({ act: () => deleteSchedule(placeOf(ending), ending.name) })}
          onClose={() => setEnding(null)}
        >
          It will no longer run for {ending.tenant}. Its past jobs are kept.
        </ConfirmDialog>
      )}
    </ListPage>
  );
}

function placeOf(schedule: Schedule): Place {
  return { environment: schedule.environment, tenant: schedule.tenant };
}

type Act = (schedule: Schedule) => void;

function columnsOf(
  canRun: boolean,
  isBusy: boolean,
  acts: { pause: Act; run: Act; end: Act },
): Column<Schedule>[] {
  const actions: Column<Schedule> = {
    id: "actions",
    header: "Actions",
    width: "204px",
    align: "right",
    isExtra: true,
    cell: (one) => (
      <RowActions
        of={`${one.name} of ${one.tenant}`}
        isBusy={isBusy}
        actions={[
          { label: "Run now", act: () => acts.run(one) },
          { label: one.enabled ? "Pause" : "Resume", act: () => acts.pause(one) },
          { label: "Delete", act: () => acts.end(one) },
        ]}
      />
    ),
  };
  return [
    {
      id: "tenant",
      header: "Tenant",
      width: "minmax(108px, 1fr)",
      cell: (one) => <strong className="tenant-id">{one.tenant}</strong>,
    },
    { id: "name", header: "Schedule", width: "minmax(70px, 1fr)", cell: (one) => one.name },
    {
      id: "script",
      header: "Script",
      width: "minmax(60px, 0.8fr)",
      cell: (one) => <span className="mono">{one.script}</span>,
    },
    {
      id: "cron",
      header: "When",
      width: "minmax(128px, 1.4fr)",
      isExtra: true,
      cell: (one) => (
        <span title={`${one.cron} ${one.zone}`}>
          {cronText(one.cron)} <span className="dim">{one.zone}</span>
        </span>
      ),
    },
    {
      id: "last",
      header: "Last run",
      width: "156px",
      isExtra: true,
      cell: (one) =>
        one.last_job ? (
          <Link
            className="cell-link last-job"
            title={`Open ${one.last_job.job_id}`}
            to="/tenants/$tenant"
            params={{ tenant: one.tenant }}
            search={{ env: one.environment, panel: "jobs", job: one.last_job.job_id }}
          >
            <JobStatus status={one.last_job.status} />
            <Moment at={one.last_job.finished ?? one.last_job.created} />
          </Link>
        ) : (
          <span className="null-dash">–</span>
        ),
    },
    {
      id: "next",
      header: "Next runs",
      width: "minmax(60px, 1.2fr)",
      cell: (one) =>
        one.enabled && one.next_due ? (
          <span title={one.next_runs.map((moment) => exactText(moment, one.zone)).join("\n")}>
            <Moment at={one.next_due} isDated />
          </span>
        ) : (
          <span className="dim">paused</span>
        ),
    },
    ...(canRun ? [actions] : []),
  ];
}

const AGAIN_MS = 30_000;

function schedulesQuery(environment: string) {
  const url = address`/environments/${environment}/schedules`;
  return listQuery<SchedulePage>(["schedules", environment], url, { limit: 200 });
}

function enableSchedule(place: Place, name: string, enabled: boolean): Promise<Schedule> {
  return change("PATCH", scheduleAddress(place, name), "of the queue", { body: { enabled } });
}

function deleteSchedule(place: Place, name: string): Promise<void> {
  return change("DELETE", scheduleAddress(place, name), "of the queue");
}

function runSchedule(place: Place, name: string): Promise<Job> {
  return change("POST", `${scheduleAddress(place, name)}/runs`, "a new thing");
}

function scheduleAddress(place: Place, name: string): string {
  return `${tenantAddress(place)}/schedules/${encodeURIComponent(name)}`;
}
