// Ctrl+K: type a part of a tenant's id, or `tenant/stream`, and be there. A job is found by its id in a tenant.
import { Modal, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useState } from "react";
import { jobQuery, overviewQuery, tenantsQuery } from "@/api/queries";
import type { PanelSearch } from "@/search";

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
        aria-label="Tenant, tenant/stream or tenant/job"
        placeholder="acme, acme/Invoice, acme/job-4711"
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
  const [head = "", tail] = text.split("/", 2);
  const tenants = useInfiniteQuery({ ...tenantsQuery(environment), enabled: isOpen });
  const ids = tenants.data?.pages.flatMap((page) => page.tenants) ?? [];
  const exact = tail !== undefined ? ids.find((id) => id === head) : undefined;
  const place = { environment, tenant: exact ?? "" };
  const overview = useQuery({ ...overviewQuery(place), enabled: isOpen && exact !== undefined });
  const job = useQuery({
    ...jobQuery(place, tail ?? ""),
    enabled: isOpen && exact !== undefined && Boolean(tail),
    retry: false,
  });
  if (exact !== undefined) {
    const streams = overview.data?.streams.filter((one) => contains(one.stream, tail ?? "")) ?? [];
    const found: Goal[] = streams.slice(0, SHOWN_MAX).map((one) => ({
      id: one.stream,
      label: `${exact} / ${one.stream}`,
      tenant: exact,
      search: { env: environment, panel: "snapshots", stream: one.stream },
    }));
    if (job.data)
      found.push({
        id: `job ${job.data.job_id}`,
        label: `${exact} / job ${job.data.job_id}`,
        tenant: exact,
        search: { env: environment, panel: "jobs", job: job.data.job_id },
      });
    return found;
  }
  return ids
    .filter((id) => contains(id, head))
    .slice(0, SHOWN_MAX)
    .map((id) => ({ id, label: id, tenant: id, search: { env: environment, panel: "snapshots" } }));
}

function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}
