// A script and its parameters, to be run for the tenant; those of an earlier job may be where it begins.
import { useQueryClient } from "@tanstack/react-query";
import { runJob } from "@/api/changes";
import { tenantKey } from "@/api/client";
import { usePanel } from "@/navigation/panel";
import { ScriptDialog, type ScriptOrder } from "./ScriptDialog";
import type { ScriptChoice } from "./ScriptFields";

export function RunDialog({ onClose, ...given }: { initial?: ScriptChoice; onClose: () => void }) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  async function run(order: ScriptOrder) {
    const job = await runJob(place, order);
    await client.invalidateQueries({ queryKey: [...tenantKey(place), "jobs"] });
    go({ job: job.job_id, show: undefined });
  }
  return <ScriptDialog title="Run a script" {...given} onRun={run} onClose={onClose} />;
}
