// The end of a dialog's form: what went wrong, and the buttons that close it and send it.
import { Button, Group } from "@mantine/core";
import { ProblemNote } from "./ProblemNote";

interface FormEndProps {
  sending: { isError: boolean; isPending: boolean; error: unknown };
  verb: string;
  onClose: () => void;
}

export function FormEnd({ sending, verb, onClose }: FormEndProps) {
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
