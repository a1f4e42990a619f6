// Scripts that are run again and again: when, the next times, paused or run at once.
import { Button } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { Place } from "@/api/place";
import type { Schedule } from "@/api/types";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { EmptyNote } from "@/parts/EmptyNote";
import { exactText } from "@/parts/formats";
import { ListPage } from "@/parts/ListPage";
import { Moment } from "@/parts/Moment";
import { RowActions } from "@/parts/RowActions";
import { tell, tellProblem } from "@/parts/toasts";
import type { Column } from "@/parts/VirtualGrid";
import { useEnvironment, useMay } from "@/session/session";
import { CreateSchedule } from "./CreateSchedule";
import { deleteSchedule, enableSchedule, runSchedule, schedulesKey, schedulesQuery } from "./schedules";

export function SchedulesPage() {
  const environment = useEnvironment();
  const may = useMay();
  const client = useQueryClient();
  const navigate = useNavigate();
  const list = useInfiniteQuery(schedulesQuery(environment));
  const schedules = useMemo(() => list.data?.pages.flatMap((page) => page.schedules) ?? [], [list.data]);
  const [isCreating, setCreating] = useState(false);
  const [ending, setEnding] = useState<Schedule | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: schedulesKey(environment) });
  const change = useMutation({
    mutationFn: ({ act }: { act: () => Promise<unknown> }) => act(),
    onSuccess: () => setEnding(null),
    onError: tellProblem,
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
      words={["schedule", "schedules"]}
      query={list}
      rows={schedules}
      columns={columns}
      keyOf={(one) => `${one.tenant} ${one.name}`}
      nameOf={(one) => one.name}
      minWidth={760}
      onOpen={(one) =>
        void navigate({
          to: "/tenants/$tenant",
          params: { tenant: one.tenant },
          search: { env: environment, panel: "jobs" },
        })
      }
      action={
        may("jobs:run") && (
          <Button size="sm" onClick={() => setCreating(true)}>
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
      {isCreating && (
        <CreateSchedule
          environment={environment}
          onClose={() => setCreating(false)}
          onCreated={() => {
            setCreating(false);
            void refresh();
          }}
        />
      )}
      {ending && (
        <ConfirmDialog
          title={`Delete ${ending.name}?`}
          verb="Delete"
          isSending={change.isPending}
          onConfirm={() => change.mutate({ act: () => deleteSchedule(placeOf(ending), ending.name) })}
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
    width: "216px",
    align: "right",
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
      width: "minmax(80px, 0.8fr)",
      cell: (one) => <strong className="tenant-id">{one.tenant}</strong>,
    },
    { id: "name", header: "Schedule", width: "minmax(80px, 1fr)", cell: (one) => one.name },
    {
      id: "script",
      header: "Script",
      width: "minmax(80px, 0.8fr)",
      cell: (one) => <span className="mono">{one.script}</span>,
    },
    {
      id: "cron",
      header: "When",
      width: "minmax(110px, 1fr)",
      cell: (one) => (
        <span title={one.zone}>
          <span className="mono">{one.cron}</span> <span className="dim">{one.zone}</span>
        </span>
      ),
    },
    {
      id: "next",
      header: "Next runs",
      width: "minmax(90px, 0.8fr)",
      cell: (one) =>
        one.enabled && one.next_due ? (
          <span title={one.next_runs.map((moment) => exactText(moment, one.zone)).join("\n")}>
            <Moment at={one.next_due} />
          </span>
        ) : (
          <span className="dim">paused</span>
        ),
    },
    ...(canRun ? [actions] : []),
  ];
}
