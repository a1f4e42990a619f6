// One name is asked for, and something is done with it; where that fails, what was typed stays.
import { Button, Group, Stack, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Dialog } from "./Dialog";
import { ProblemNote } from "./ProblemNote";

interface NameDialogProps {
  title: string;
  label: string;
  /** The verb on the button. */
  action: string;
  description?: string;
  placeholder?: string;
  /** What is there already; it must be changed before the button works. */
  initial?: string;
  onSubmit: (name: string) => Promise<unknown>;
  onClose: () => void;
}

export function NameDialog(props: NameDialogProps) {
  const [name, setName] = useState(props.initial ?? "");
  const submitting = useMutation({
    mutationFn: () => props.onSubmit(name.trim()),
    onSuccess: props.onClose,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!submitting.isPending) submitting.mutate();
  }
  return (
    <Dialog onClose={props.onClose} title={props.title}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            data-autofocus
            required
            label={props.label}
            description={props.description}
            placeholder={props.placeholder}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          {submitting.isError && <ProblemNote error={submitting.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={props.onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={submitting.isPending}
              disabled={name.trim() === (props.initial ?? "")}
            >
              {props.action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
