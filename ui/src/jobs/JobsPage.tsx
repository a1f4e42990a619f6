// The jobs of all tenants, the newest first, as they become what they become.
import { Button, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { allJobsQuery, useList } from "@/api/queries";
import type { Job, JobStatus as Status } from "@/api/types";
import { useLookAgain } from "@/events/events";
import type { JobsSearch } from "@/navigation/search";
import { ListPage, RowActions } from "@/parts/ListPage";
import { EmptyNote } from "@/parts/states";
import type { Column } from "@/parts/VirtualGrid";
import { useEnvironment, useMay } from "@/session/session";
import { GroupDialog } from "./GroupDialog";
import { GroupHead } from "./GroupHead";
import { JOB_COLUMNS, STATUSES, statusText } from "./jobColumns";
import { isOpen, useJobActions } from "./useJobActions";

const TYPED_MS = 250;

export function JobsPage() {
  const environment = useEnvironment();
  const search = useSearch({ from: "/signed-in/jobs" });
  const navigate = useNavigate();
  const may = useMay();
  const [tenant, setTenant] = useState(search.tenant ?? "");
  const again = useLookAgain();
  const { status, tenant: only, group } = search;
  const choice = { status, tenant: only, group };
  const list = useList(allJobsQuery(environment, choice), (page) => page.jobs, { refetchInterval: again });
  const go = (changes: Pick<JobsSearch, "status" | "tenant" | "group">) =>
    void navigate({ to: "/jobs", search: (before) => ({ ...before, ...changes }), replace: true });
  const ask = useDebouncedCallback((text: string) => go({ tenant: text.trim() || undefined }), TYPED_MS);
  const columns = useColumns(environment, may("jobs:run"));
  const isFiltered = status !== undefined || only !== undefined;
  const [isRunning, setRunning] = useState(false);

  function open(job: Job) {
    void navigate({
      to: "/tenants/$tenant",
      params: { tenant: job.tenant },
      search: { env: environment, panel: "jobs", job: job.job_id },
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
            placeholder="Tenant's id"
            value={tenant}
            onChange={(event) => {
              setTenant(event.currentTarget.value);
              ask(event.currentTarget.value);
            }}
          />
          <Select
            aria-label="Status"
            placeholder="Any status"
            clearable
            data={STATUSES.map((value) => ({ value, label: statusText(value) }))}
            value={search.status ?? null}
            onChange={(value) => go({ status: (value ?? undefined) as Status | undefined })}
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
          <EmptyNote title="No job matches.">Choose another tenant or status.</EmptyNote>
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

function useColumns(environment: string, canRun: boolean): readonly Column<Job>[] {
  const { repeat, cancel, isBusy } = useJobActions();
  return useMemo(() => {
    const tenant: Column<Job> = {
      id: "tenant",
      header: "Tenant",
      width: "minmax(56px, 0.8fr)",
      cell: (job) => <strong className="tenant-id">{job.tenant}</strong>,
    };
    const actions: Column<Job> = {
      id: "actions",
      header: "Actions",
      width: "92px",
      align: "right",
      isExtra: true,
      cell: (job) => {
        const place = { environment, tenant: job.tenant };
        const actions = [
          isOpen(job)
            ? { label: "Cancel", act: () => cancel(place, job.job_id) }
            : job.is_repeatable && { label: "Run again", act: () => repeat(place, job.job_id) },
        ];
        return <RowActions of={job.job_id} isBusy={isBusy} actions={actions} />;
      },
    };
    const [status, ...rest] = JOB_COLUMNS;
    return [...(status ? [status] : []), tenant, ...rest, ...(canRun ? [actions] : [])];
  }, [environment, canRun, repeat, cancel, isBusy]);
}
