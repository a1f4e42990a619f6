// What every dialog that runs a script has: the script with its parameters, why, and the button that runs it.
import { Stack } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { useReason } from "@/session/reason";
import { DryRunField, NO_SCRIPT, type ScriptChoice, ScriptFields } from "./ScriptFields";

export interface ScriptOrder {
  script: string;
  parameters: ScriptChoice["parameters"];
  dry_run: boolean;
  message: string;
}

interface ScriptDialogProps {
  title: string;
  verb?: string;
  initial?: ScriptChoice;
  /** A field above the script, with which the form begins. */
  first?: ReactNode;
  /** Whether that field is not filled in. */
  isMissing?: boolean;
  /** The fields below it; without a verb of its own it can be a dry run. */
  children?: (script: string, isDry: boolean) => ReactNode;
  onRun: (order: ScriptOrder) => Promise<unknown>;
  onClose: () => void;
}

export function ScriptDialog(props: ScriptDialogProps) {
  const { title, verb, initial = NO_SCRIPT, first, isMissing = false, children, onRun, onClose } = props;
  const [choice, setChoice] = useState(initial);
  const [isDry, setDry] = useState(false);
  const reason = useReason(isDry);
  const running = useMutation({
    mutationFn: (script: string) =>
      onRun({ script, parameters: choice.parameters, dry_run: isDry, message: reason.message }),
    onSuccess: onClose,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (choice.script !== null && !isMissing && !running.isPending) running.mutate(choice.script);
  }
  return (
    <Dialog onClose={onClose} title={title}>
      <form onSubmit={submit}>
        <Stack>
          {first}
          <ScriptFields choice={choice} onChange={setChoice} isFirst={!first} />
          {children?.(choice.script ?? "", isDry)}
          {verb === undefined && <DryRunField isDry={isDry} onChange={setDry} />}
          {reason.field}
          <FormFooter sending={running} verb={verb ?? "Run"} disabled={reason.isMissing} onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
