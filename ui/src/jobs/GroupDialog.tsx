// A script and its parameters, to be run for all tenants of the environment, or for those whose ids begin alike.
import { NumberInput, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { allJobsKey } from "@/api/queries";
import type { JobGroup } from "@/api/types";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { runGroup } from "./groups";
import { DryRunField, NO_SCRIPT, ScriptFields } from "./ScriptFields";

interface GroupDialogProps {
  environment: string;
  onClose: () => void;
  onRun: (group: JobGroup) => void;
}

export function GroupDialog({ environment, onClose, onRun }: GroupDialogProps) {
  const client = useQueryClient();
  const [choice, setChoice] = useState(NO_SCRIPT);
  const [prefix, setPrefix] = useState("");
  const [isDry, setDry] = useState(false);
  const [canary, setCanary] = useState<number | string>("");
  const running = useMutation({
    mutationFn: (script: string) =>
      runGroup(environment, {
        script,
        parameters: choice.parameters,
        prefix: prefix.trim(),
        dry_run: isDry,
        canary: isDry ? 0 : Number(canary),
      }),
    onSuccess: async (group) => {
      await client.invalidateQueries({ queryKey: allJobsKey(environment) });
      onRun(group);
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (choice.script !== null && !running.isPending) running.mutate(choice.script);
  }
  return (
    <Dialog onClose={onClose} title="Run a script for many tenants">
      <form onSubmit={submit}>
        <Stack>
          <ScriptFields choice={choice} onChange={setChoice} isFirst />
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
          <DryRunField isDry={isDry} onChange={setDry} />
          <FormFooter sending={running} verb="Run" onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
