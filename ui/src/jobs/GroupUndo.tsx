// Taking back what a group's jobs did: first for each tenant what would go back, then a version for each of them.
import { Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type Reversion, revert } from "@/api/changes";
import { send, tenantAddress, unchanged } from "@/api/client";
import { asProblem, MISSING } from "@/api/problem";
import { allJobsQuery, useList } from "@/api/queries";
import type { Job } from "@/api/types";
import { goesBack } from "@/history/Undo";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { counted, countText } from "@/parts/formats";
import { PlainTable } from "@/parts/PlainTable";
import { inTurn } from "@/parts/page";
import type { Column } from "@/parts/VirtualGrid";
import { Changes } from "@/parts/values";
import { useReason } from "@/session/reason";

const NO_VERSION = "its job made no version";

interface Outcome {
  tenant: string;
  effect?: Reversion;
  etag?: string | null;
  error?: string;
}

interface GroupUndoProps {
  environment: string;
  group: string;
  onClose: () => void;
}

export function GroupUndo({ environment, group, onClose }: GroupUndoProps) {
  const client = useQueryClient();
  const reason = useReason();
  const { query, entries: jobs } = useList(allJobsQuery(environment, { group }), (page) => page.jobs, {
    isWhole: true,
  });
  const isListed = query.data !== undefined && !query.hasNextPage;
  const [outcomes, setOutcomes] = useState<Outcome[]>([]);
  const keep = (one: Outcome) =>
    setOutcomes((before) => [...before.filter((other) => other.tenant !== one.tenant), one]);

  async function look({ tenant, started, status }: Job) {
    const place = { environment, tenant };
    if (started === null || status === "held") return keep({ tenant, error: NO_VERSION });
    try {
      const etag = (await send("GET", tenantAddress(place))).headers.get("ETag");
      const effect = await revert(place, { job_id: group, dry_run: true }, "only a check");
      keep({ tenant, effect, etag });
    } catch (error) {
      const refused = asProblem(error);
      keep({ tenant, error: refused.status === MISSING ? NO_VERSION : refused.title });
    }
  }
  async function undo({ tenant, etag }: Outcome) {
    const place = { environment, tenant };
    try {
      const order = { job_id: group, message: reason.message };
      keep({ tenant, effect: await revert(place, order, unchanged(etag)) });
    } catch (error) {
      keep({ tenant, error: asProblem(error).title });
    }
  }

  const looking = useMutation({
    mutationFn: () => inTurn(jobs, look),
  });
  const { mutate } = looking;
  useEffect(() => {
    if (isListed) mutate();
  }, [isListed, mutate]);
  const due = outcomes.filter(({ effect }) => effect && !effect.committed && goesBack(effect) > 0);
  const undoing = useMutation({
    mutationFn: () => inTurn(due, undo),
    onSettled: () => client.invalidateQueries(),
  });
  const isLooking = !isListed || looking.isPending;
  return (
    <Dialog onClose={onClose} title="Undo the group's jobs" size="80%">
      <Stack>
        <Text role="status">
          {isLooking
            ? `${countText(outcomes.length)} of ${counted(jobs.length, "tenant")} looked at.`
            : `${counted(due.length, "tenant")} of ${countText(jobs.length)} can go back. Each gets a new version; what changed again later stays.`}
        </Text>
        <PlainTable
          label="Tenants of the group"
          columns={COLUMNS}
          rows={[...outcomes].sort((one, other) => (one.tenant < other.tenant ? -1 : 1))}
          keyOf={(one) => one.tenant}
        />
        {due.length > 0 && reason.field}
        <FormFooter
          sending={undoing}
          verb={due.length > 0 ? `Undo for ${counted(due.length, "tenant")}` : "Undo"}
          disabled={isLooking || due.length === 0 || reason.isMissing}
          onAct={undoing.mutate}
          onClose={onClose}
        />
      </Stack>
    </Dialog>
  );
}

const COLUMNS: Column<Outcome>[] = [
  { id: "tenant", header: "Tenant", cell: ({ tenant }) => tenant },
  { id: "rows", header: "Rows", cell: ({ effect }) => effect && <Changes counts={summed(effect)} /> },
  {
    id: "kept",
    header: "Rows that stay",
    align: "right",
    cell: ({ effect }) => effect && countText(summed(effect).kept),
  },
  {
    id: "files",
    header: "Files",
    align: "right",
    cell: ({ effect }) => effect && countText(effect.files_written.length + effect.files_deleted.length),
  },
  { id: "result", header: "Result", cell: resultText },
];

function resultText({ effect, error }: Outcome): string {
  if (!effect) return error ?? "";
  if (effect.committed) return `undone as version ${effect.tenant_version}`;
  return goesBack(effect) > 0 ? "can go back" : "nothing is left to take back";
}

function summed({ streams }: Reversion) {
  const sum = { inserted: 0, updated: 0, deleted: 0, kept: 0 };
  for (const { counts, kept_rows } of Object.values(streams)) {
    sum.inserted += counts.inserted;
    sum.updated += counts.updated;
    sum.deleted += counts.deleted;
    sum.kept += kept_rows;
  }
  return sum;
}
