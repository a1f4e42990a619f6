// Dialogs: any, a question before something ends, a form for one name, and the end of every form.
import {
  Button,
  type ButtonProps,
  Group,
  Modal,
  type ModalProps,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { useFocusBack } from "./page";
import { ProblemNote } from "./states";

/** A dialog, open as long as it is in the page; what had the focus before has it again when the dialog goes. */
export function Dialog(props: Omit<ModalProps, "opened">) {
  useFocusBack();
  return <Modal opened {...props} />;
}

interface FormFooterProps extends ButtonProps {
  /** What the button starts: the footer tells its error. */
  sending: { isError: boolean; isPending: boolean; error: unknown };
  verb: string;
  /** Without it the button sends the form. */
  onAct?: () => void;
  /** Without it what the button started has to end first. */
  canLeave?: boolean;
  onClose: () => void;
}

export function FormFooter({ sending, verb, onAct, canLeave = true, onClose, ...button }: FormFooterProps) {
  return (
    <>
      {sending.isError && <ProblemNote error={sending.error} />}
      <Group justify="flex-end">
        <Button size="sm" disabled={!canLeave} onClick={onClose}>
          Cancel
        </Button>
        <Button
          size="sm"
          variant="filled"
          type={onAct ? "button" : "submit"}
          loading={sending.isPending}
          data-autofocus={onAct ? true : undefined}
          onClick={onAct}
          {...button}
        >
          {verb}
        </Button>
      </Group>
    </>
  );
}

/** A question before something ends: what it means, Cancel, and the verb in red. */
export function ConfirmDialog({
  title,
  children,
  ...footer
}: FormFooterProps & { title: string; children: ReactNode }) {
  return (
    <Dialog onClose={footer.onClose} title={title}>
      <Stack>
        <Text component="div">{children}</Text>
        <FormFooter color="red" {...footer} />
      </Stack>
    </Dialog>
  );
}

interface NameDialogProps {
  title: string;
  label: string;
  /** The verb on the button. */
  action: string;
  description?: string;
  placeholder?: string;
  /** What is there already; it must be changed before the button works. */
  initial?: string;
  /** Other fields, and whether one of them is not filled in that must be. */
  children?: ReactNode;
  isMissing?: boolean;
  /** What has to be typed, before something ends for good. */
  expected?: string;
  onSubmit: (name: string) => Promise<unknown>;
  onClose: () => void;
}

/** One name is asked for, and something is done with it; where that fails, what was typed stays. */
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
          {props.children}
          <FormFooter
            sending={submitting}
            verb={props.action}
            disabled={
              name.trim() === (props.initial ?? "") ||
              name.trim() !== (props.expected ?? name.trim()) ||
              props.isMissing === true
            }
            {...(props.expected && { color: "red" })}
            onClose={props.onClose}
          />
        </Stack>
      </form>
    </Dialog>
  );
}
