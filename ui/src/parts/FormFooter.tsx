// The end of a dialog's form: what went wrong, and the buttons that close it and send it.
import { Button, Group } from "@mantine/core";
import { ProblemNote } from "./ProblemNote";

interface FormFooterProps {
  sending: { isError: boolean; isPending: boolean; error: unknown };
  verb: string;
  onClose: () => void;
}

export function FormFooter({ sending, verb, onClose }: FormFooterProps) {
  return (
    <>
      {sending.isError && <ProblemNote error={sending.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button type="submit" loading={sending.isPending}>
          {verb}
        </Button>
      </Group>
    </>
  );
}
