// A script and its parameters, to be run for all tenants of the environment, or for those whose ids begin alike.
import { NumberInput, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { allJobsKey } from "@/api/queries";
import type { JobGroup } from "@/api/types";
import { runGroup } from "./groups";
import { ScriptDialog, type ScriptOrder } from "./ScriptDialog";

interface GroupDialogProps {
  environment: string;
  onClose: () => void;
  onRun: (group: JobGroup) => void;
}

export function GroupDialog({ environment, onClose, onRun }: GroupDialogProps) {
  const client = useQueryClient();
  const [prefix, setPrefix] = useState("");
  const [canary, setCanary] = useState<number | string>("");
  async function run(order: ScriptOrder) {
    const first = order.dry_run ? 0 : Number(canary);
    const group = await runGroup(environment, { ...order, prefix: prefix.trim(), canary: first });
    await client.invalidateQueries({ queryKey: allJobsKey(environment) });
    onRun(group);
  }
  return (
    <ScriptDialog title="Run a script for many tenants" onRun={run} onClose={onClose}>
      {(_script, isDry) => (
        <>
          <TextInput
            label="Tenants whose ids begin with"
            description="Empty: all tenants of the environment."
            placeholder="All tenants"
            value={prefix}
            onChange={(event) => setPrefix(event.currentTarget.value)}
          />
          <NumberInput
            label="Tenants that run first"
            description="Their jobs are held. The others run once these are published. Empty: all run now."
            placeholder="None"
            min={0}
            allowDecimal={false}
            disabled={isDry}
            value={canary}
            onChange={setCanary}
          />
        </>
      )}
    </ScriptDialog>
  );
}
