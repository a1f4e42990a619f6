// Jobs by tenant: the page chooses one, the tenant's panel shows its jobs.
import { TextInput } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { jobsQuery, tenantsQuery } from "@/api/queries";
import { EmptyNote } from "@/parts/EmptyNote";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { useEnvironment } from "@/session/session";
import { JobStatus } from "./jobColumns";

export function JobsPage() {
  const environment = useEnvironment();
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const tenants = useInfiniteQuery(tenantsQuery(environment));
  const ids = useMemo(() => tenants.data?.pages.flatMap((page) => page.tenants) ?? [], [tenants.data]);
  const shown = ids.filter((id) => id.toLowerCase().includes(text.toLowerCase()));
  const columns: Column<string>[] = [
    {
      id: "tenant",
      header: "Tenant",
      width: "minmax(120px, 1fr)",
      cell: (tenant) => <strong className="tenant-id">{tenant}</strong>,
    },
    {
      id: "job",
      header: "Last job",
      width: "minmax(260px, 1fr)",
      cell: (tenant) => <LastJob environment={environment} tenant={tenant} />,
    },
  ];
  return (
    <div className="page">
      <div className="page-head">
        <h1>Jobs</h1>
        <TextInput
          aria-label="Search tenants"
          placeholder="Search"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </div>
      {tenants.isPending ? (
        <LateSkeleton />
      ) : tenants.isError ? (
        <ProblemNote error={tenants.error} onRetry={() => tenants.refetch()} />
      ) : shown.length === 0 ? (
        <EmptyNote title="There is no such tenant." />
      ) : (
        <VirtualGrid
          label="Jobs by tenant"
          rows={shown}
          columns={columns}
          keyOf={(tenant) => tenant}
          onOpen={(tenant) =>
            void navigate({
              to: "/tenants/$tenant",
              params: { tenant },
              search: { env: environment, panel: "jobs" },
            })
          }
        />
      )}
    </div>
  );
}

function LastJob({ environment, tenant }: { environment: string; tenant: string }) {
  const jobs = useInfiniteQuery(jobsQuery({ environment, tenant }));
  const last = jobs.data?.pages[0]?.jobs[0];
  if (!last) return jobs.isPending ? null : <span className="null-dash">none</span>;
  return (
    <span className="name-cell">
      <JobStatus status={last.status} />
      <span className="mono">{last.job_id}</span>
      <span className="dim">
        <Moment at={last.created} />
      </span>
    </span>
  );
}
