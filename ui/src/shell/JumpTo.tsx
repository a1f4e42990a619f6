// Ctrl+K: type a part of a tenant's id, `tenant/stream`, a stream of the open tenant, or a job's id, and be there.
import { Modal, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type KeyboardEvent, useState } from "react";
import { allJobsQuery, overviewQuery, tenantsQuery } from "@/api/queries";
import type { PanelSearch } from "@/search";
import { useMay } from "@/session/session";

const SHOWN_MAX = 12;

interface Goal {
  id: string;
  label: string;
  tenant: string;
  search: PanelSearch;
}

export function JumpTo(props: { isOpen: boolean; onClose: () => void; environment: string }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const navigate = useNavigate();
  const goals = useGoals(props.environment, text, props.isOpen);

  function close() {
    setText("");
    setActive(0);
    props.onClose();
  }

  function go(goal: Goal | undefined) {
    if (!goal) return;
    close();
    void navigate({ to: "/tenants/$tenant", params: { tenant: goal.tenant }, search: goal.search });
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === "ArrowDown") setActive(Math.min(active + 1, goals.length - 1));
    else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
    else if (event.key === "Enter") go(goals[active]);
    else return;
    event.preventDefault();
  }

  return (
    <Modal opened={props.isOpen} onClose={close} title="Jump to" size="md">
      <TextInput
        data-autofocus
        aria-label="Tenant, stream or job"
        placeholder="acme, acme/Invoice, job-4711"
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div className="jump-list">
        {goals.map((goal, index) => (
          <UnstyledButton
            key={goal.id}
            className="jump-goal"
            data-active={index === active || undefined}
            onClick={() => go(goal)}
          >
            {goal.label}
          </UnstyledButton>
        ))}
        {text && goals.length === 0 && (
          <Text size="sm" c="dimmed" p="xs">
            Nothing in {props.environment} has that name.
          </Text>
        )}
      </div>
    </Modal>
  );
}

function useGoals(environment: string, text: string, isOpen: boolean): Goal[] {
  const may = useMay();
  const { tenant: shown } = useParams({ strict: false });
  const [head = "", tail] = text.split("/", 2);
  const tenants = useInfiniteQuery({ ...tenantsQuery(environment), enabled: isOpen });
  const ids = tenants.data?.pages.flatMap((page) => page.tenants) ?? [];
  const named = tail === undefined ? undefined : ids.find((id) => id === head);
  // Without a slash a stream is one of the tenant that one looks at.
  const of = named ?? (tail === undefined ? shown : undefined);
  const part = tail ?? text;
  const overview = useQuery({
    ...overviewQuery({ environment, tenant: of ?? "" }),
    enabled: isOpen && of !== undefined,
  });
  const jobs = useInfiniteQuery({
    ...allJobsQuery(environment, { jobId: part, tenant: named }),
    enabled: isOpen && part !== "" && may("jobs:read"),
  });
  const goals: Goal[] = (jobs.data?.pages[0]?.jobs ?? []).map((job) => ({
    id: `job ${job.tenant} ${job.job_id}`,
    label: `${job.tenant} / job ${job.job_id}`,
    tenant: job.tenant,
    search: { env: environment, panel: "jobs", job: job.job_id },
  }));
  if (of !== undefined && (named !== undefined || part !== ""))
    for (const { stream } of overview.data?.streams.filter((one) => contains(one.stream, part)) ?? [])
      goals.push({
        id: `stream ${of} ${stream}`,
        label: `${of} / ${stream}`,
        tenant: of,
        search: { env: environment, panel: "snapshots", stream },
      });
  if (tail === undefined)
    for (const id of ids.filter((one) => contains(one, head)).slice(0, SHOWN_MAX))
      goals.push({
        id: `tenant ${id}`,
        label: id,
        tenant: id,
        search: { env: environment, panel: "snapshots" },
      });
  return goals.slice(0, SHOWN_MAX);
}

function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}
