// What a group of jobs is: its script for how many tenants, and how far its jobs are.
import { Button, Group, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { allJobsKey } from "@/api/queries";
import type { GroupEffects, JobGroup } from "@/api/types";
import { useLookAgain } from "@/events/events";
import { ConfirmDialog } from "@/parts/dialogs";
import { counted, countText } from "@/parts/formats";
import { ProblemNote } from "@/parts/states";
import { tell, tellProblem } from "@/parts/toasts";
import { Changes, Moment } from "@/parts/values";
import { useMay } from "@/session/session";
import { GroupUndo } from "./GroupUndo";
import { countsText, decideGroup, effectsQuery, groupQuery, openOf, tenantsText } from "./groups";

const NAMED = 3;

interface GroupHeadProps {
  environment: string;
  group: string;
  onClose: () => void;
}

export function GroupHead({ environment, group, onClose }: GroupHeadProps) {
  const found = useQuery({ ...groupQuery(environment, group), refetchInterval: useLookAgain() });
  const of = found.data;
  const may = useMay();
  const [isUndoing, setUndoing] = useState(false);
  return (
    <section className="group-head" aria-label="Group">
      <Group gap="sm">
        {of && (
          <Text className="group-text">
            {of.dry_run && "Dry run of "}
            <strong>{of.script}</strong> for {tenantsText(of)}: {countsText(of)}
          </Text>
        )}
        <Group gap="xs" ml="auto">
          {of && may("jobs:run") && <Decide environment={environment} of={of} />}
          {of && of.counts.succeeded !== undefined && !of.dry_run && may("snapshots:write") && (
            <Button onClick={() => setUndoing(true)}>Undo these jobs…</Button>
          )}
          <Button onClick={onClose} flex="none">
            All jobs
          </Button>
        </Group>
      </Group>
      {of && (
        <Text size="xs" c="dimmed">
          Group <span className="mono">{of.group}</span>, submitted <Moment at={of.created} isDated />
          {of.submitted_by && ` by ${of.submitted_by}`}
          {of.message && `: ${of.message}`}
        </Text>
      )}
      {(of?.dry_run || (of?.counts.held ?? 0) > 0) && may("snapshots:read") && (
        <Effects environment={environment} group={group} />
      )}
      {found.isLoadingError && <ProblemNote error={found.error} onRetry={() => found.refetch()} />}
      {isUndoing && <GroupUndo environment={environment} group={group} onClose={() => setUndoing(false)} />}
    </section>
  );
}

/** Publishes or discards the group's held jobs, or cancels the others; who is refused is told. */
function Decide({ environment, of }: { environment: string; of: JobGroup }) {
  const { group } = of;
  const client = useQueryClient();
  const [asked, setAsked] = useState<keyof typeof QUESTIONS | null>(null);
  const deciding = useMutation({
    mutationFn: ({ how, passed }: { how: "publish" | "discard" | "cancel"; passed: boolean }) =>
      decideGroup(environment, group, how, passed),
    onMutate: () => setAsked(null),
    onSuccess: ({ refused, left }, { how }) => {
      const first = refused[0];
      if (first)
        tell(
          `${counted(refused.length, "job")} ${refused.length === 1 ? "stays as it is" : "stay as they are"}. ${first.tenant}: ${first.error}`,
        );
      if (left > 0) tell(`${counted(left, "job")} ${left === 1 ? "is" : "are"} left; ${how} again.`);
    },
    onError: tellProblem,
    onSettled: () => client.invalidateQueries({ queryKey: allJobsKey(environment) }),
  });
  const ask = (how: keyof typeof QUESTIONS) => {
    deciding.reset(); // the question does not show what failed before
    setAsked(how);
  };
  const question = asked && QUESTIONS[asked];
  const button = (label: string, how: "publish" | "discard" | "cancel", passed = false) => (
    <Button
      loading={deciding.isPending}
      onClick={() => (how === "publish" ? deciding.mutate({ how, passed }) : ask(how))}
      {...(how !== "publish" && { color: "red", variant: "outline" })}
    >
      {label}
    </Button>
  );
  return (
    <>
      {(of.counts.held ?? 0) > 0 && (
        <>
          {button("Publish those that passed", "publish", true)}
          {button("Publish all", "publish")}
          {button("Discard all", "discard")}
        </>
      )}
      {openOf(of) > 0 && button("Cancel all", "cancel")}
      {asked && question && (
        <ConfirmDialog
          title={`${question.verb} ${counted(question.count(of), question.noun)} of ${of.script}?`}
          verb={`${question.verb} all`}
          sending={deciding}
          onAct={() => deciding.mutate({ how: asked, passed: false })}
          onClose={() => setAsked(null)}
        >
          {question.text}
        </ConfirmDialog>
      )}
    </>
  );
}

const QUESTIONS = {
  cancel: {
    verb: "Cancel",
    noun: "job",
    count: openOf,
    text: "Jobs that wait do not begin, those that run are stopped. Held jobs stay.",
  },
  discard: {
    verb: "Discard",
    noun: "held job",
    count: ({ counts }: JobGroup) => counts.held ?? 0,
    text: "What they would change is deleted, and cannot be published any more.",
  },
} as const;

/** What the dry runs or held jobs would change in all tenants: why some fail, unusual counts, columns. */
function Effects({ environment, group }: { environment: string; group: string }) {
  const found = useQuery({ ...effectsQuery(environment, group), refetchInterval: useLookAgain() });
  const of = found.data;
  if (found.isLoadingError) return <ProblemNote error={found.error} onRetry={() => found.refetch()} />;
  if (!of) return null;
  return (
    <div className="group-effects">
      <Text>
        Nothing is committed. {countText(of.changing)} of {countText(of.dry_runs)} would change:{" "}
        <Changes counts={of} />
      </Text>
      <EffectList
        title="Would fail"
        lines={of.failures.map((one) => ({
          id: one.error,
          text: <span className="job-reason">{one.error}</span>,
          tenants: one.tenants,
          named: one.named,
        }))}
      />
      <EffectList
        title="Unusual counts"
        lines={of.unusual.map((one) => ({
          id: `${one.tenant} ${one.stream} ${one.kind}`,
          text: (
            <>
              {one.stream}{" "}
              <span className={one.kind === "deletion" ? "mark-gone" : "mark-new"}>
                {one.kind === "deletion" ? "-" : "+"}
                {countText(one.rows)} rows ({countText(one.rows_before)} before)
              </span>
            </>
          ),
          tenants: 1,
          named: [one.tenant],
        }))}
      />
      <EffectList
        title="Columns"
        lines={of.columns.map((one) => ({
          id: `${one.stream} ${one.column} ${one.change} ${one.before} ${one.after}`,
          text: `${one.stream}.${one.column} ${columnText(one)}`,
          tenants: one.tenants,
          named: one.named,
        }))}
      />
    </div>
  );
}

function columnText({ change, before, after }: GroupEffects["columns"][number]): string {
  if (change === "retyped") return `${before} → ${after}`;
  return change === "added" ? `is new (${after})` : "goes";
}

interface EffectLine {
  id: string;
  text: ReactNode;
  tenants: number;
  named: readonly string[];
}

function EffectList({ title, lines }: { title: string; lines: readonly EffectLine[] }) {
  if (lines.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2>
        {title} <span className="dim number">{countText(lines.length)}</span>
      </h2>
      <ul>
        {lines.map((line) => (
          <li key={line.id}>
            <span>{line.text}</span>
            <span className="dim" title={line.named.join(", ")}>
              {line.named.slice(0, NAMED).join(", ")}
              {line.tenants > NAMED && ` and ${countText(line.tenants - NAMED)} more`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
