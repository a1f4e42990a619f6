// The jobs of all tenants, the newest first, as they become what they become.
import { Button, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { Outlet, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { allJobsQuery, useList } from "@/api/queries";
import type { Job, JobStatus as Status } from "@/api/types";
import { useLookAgain } from "@/events/events";
import { ListPage, RowActions } from "@/navigation/ListPage";
import { type JobsSearch, PERIODS, type Period } from "@/navigation/search";
import { EmptyNote } from "@/parts/states";
import type { Column } from "@/parts/VirtualGrid";
import { useEnvironment, useMay } from "@/session/session";
import { GroupDialog } from "./GroupDialog";
import { GroupHead } from "./GroupHead";
import { jobColumns, STATUSES, statusText } from "./jobColumns";
import { PERIOD_NAMES, periodOf } from "./periods";
import { isOpen, useJobActions } from "./useJobActions";

const TYPED_MS = 250;

export function JobsPage() {
  const environment = useEnvironment();
  const search = useSearch({ from: "/signed-in/jobs" });
  const navigate = useNavigate();
  const may = useMay();
  const [tenant, setTenant] = useState(search.tenant ?? "");
  const again = useLookAgain();
  const { status, tenant: only, group, within } = search;
  const choice = { status, tenant: only, group, ...periodOf(within, new Date()) };
  const list = useList(allJobsQuery(environment, choice), (page) => page.jobs, { refetchInterval: again });
  const go = (changes: Pick<JobsSearch, "status" | "tenant" | "group" | "within">) =>
    void navigate({ to: "/jobs", search: (before) => ({ ...before, ...changes }), replace: true });
  const ask = useDebouncedCallback((text: string) => go({ tenant: text.trim() || undefined }), TYPED_MS);
  const columns = useColumns(environment, may("jobs:run"), list.entries);
  const isFiltered = [status, only, within].some((one) => one !== undefined);
  const [isRunning, setRunning] = useState(false);

  function open(job: Job) {
    void navigate({
      to: "/jobs/$tenant",
      params: { tenant: job.tenant },
      search: (before) => ({ ...before, env: environment, panel: "jobs" as const, job: job.job_id }),
    });
  }

  return (
    <ListPage
      title="Jobs"
      noun="job"
      note={again === false ? "live" : undefined}
      list={list}
      columns={columns}
      keyOf={(job) => `${job.tenant} ${job.job_id}`}
      nameOf={(job) => job.job_id}
      hasFocus
      onOpen={open}
      action={
        <>
          <TextInput
            aria-label="Tenant"
            w={140}
            placeholder="Tenant's id"
            value={tenant}
            onChange={(event) => {
              setTenant(event.currentTarget.value);
              ask(event.currentTarget.value);
            }}
          />
          <Select
            aria-label="Status"
            w={140}
            placeholder="Any status"
            clearable
            data={STATUSES.map((value) => ({ value, label: statusText(value) }))}
            value={search.status ?? null}
            onChange={(value) => go({ status: (value ?? undefined) as Status | undefined })}
          />
          <Select
            aria-label="Submitted"
            w={150}
            placeholder="Any time"
            clearable
            data={PERIODS.map((value) => ({ value, label: PERIOD_NAMES[value] }))}
            value={within ?? null}
            onChange={(value) => go({ within: (value ?? undefined) as Period | undefined })}
          />
          {may("jobs:run") && may("tenants:read") && (
            <Button size="sm" onClick={() => setRunning(true)}>
              Run for many tenants
            </Button>
          )}
        </>
      }
      intro={
        group && (
          <GroupHead environment={environment} group={group} onClose={() => go({ group: undefined })} />
        )
      }
      empty={
        isFiltered || group ? (
          <EmptyNote title="No job matches.">Choose another tenant, status or time.</EmptyNote>
        ) : (
          <EmptyNote
            title={`No job in ${environment} yet.`}
            example={`freezeframe job submit etl.py --environment ${environment} --tenant acme`}
          >
            The queue's jobs of all tenants are listed here.
          </EmptyNote>
        )
      }
    >
      <Outlet />
      {isRunning && (
        <GroupDialog
          environment={environment}
          onClose={() => setRunning(false)}
          onRun={(made) => {
            setRunning(false);
            go({ group: made.group, status: undefined, tenant: undefined });
          }}
        />
      )}
    </ListPage>
  );
}

function useColumns(environment: string, canRun: boolean, jobs: readonly Job[]): readonly Column<Job>[] {
  const { repeat, end, isBusy } = useJobActions();
  return useMemo(() => {
    const tenant: Column<Job> = {
      id: "tenant",
      header: "Tenant",
      width: "minmax(96px, 0.9fr)",
      cell: (job) => <strong className="tenant-id">{job.tenant}</strong>,
    };
    const actions: Column<Job> = {
      id: "actions",
      header: "Actions",
      width: "88px",
      align: "right",
      isExtra: true,
      cell: (job) => {
        const place = { environment, tenant: job.tenant };
        const actions = [
          isOpen(job)
            ? { label: "Cancel", act: () => end(place, job.job_id, "cancel") }
            : job.is_repeatable && { label: "Run again", act: () => repeat(place, job.job_id) },
        ];
        return <RowActions of={job.job_id} isBusy={isBusy} actions={actions} />;
      },
    };
    const [status, ...rest] = jobColumns(jobs);
    return [...(status ? [status] : []), tenant, ...rest, ...(canRun ? [actions] : [])];
  }, [environment, canRun, jobs, repeat, end, isBusy]);
}
