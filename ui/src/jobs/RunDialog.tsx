// A script and its parameters, to be run for the tenant; those of an earlier job may be where it begins.
import { Stack } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { runJob } from "@/api/changes";
import { tenantKey } from "@/api/client";
import { usePanel } from "@/navigation/panel";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { DryRunField, NO_SCRIPT, type ScriptChoice, ScriptFields } from "./ScriptFields";

interface RunDialogProps {
  initial?: ScriptChoice;
  onClose: () => void;
}

export function RunDialog({ initial = NO_SCRIPT, onClose }: RunDialogProps) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  const [choice, setChoice] = useState(initial);
  const [isDry, setDry] = useState(false);
  const running = useMutation({
    mutationFn: (script: string) => runJob(place, { script, parameters: choice.parameters, dry_run: isDry }),
    onSuccess: async (job) => {
      onClose();
      await client.invalidateQueries({ queryKey: [...tenantKey(place), "jobs"] });
      go({ job: job.job_id, show: undefined });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (choice.script !== null && !running.isPending) running.mutate(choice.script);
  }
  return (
    <Dialog onClose={onClose} title="Run a script">
      <form onSubmit={submit}>
        <Stack>
          <ScriptFields choice={choice} onChange={setChoice} isFirst />
          <DryRunField isDry={isDry} onChange={setDry} />
          <FormFooter sending={running} verb="Run" onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
