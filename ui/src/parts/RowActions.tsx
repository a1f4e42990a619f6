// The buttons of a row of a list, each of which says what it is about.
import { Button, Group } from "@mantine/core";

interface RowAction {
  label: string;
  act: () => void;
  title?: string;
}

interface RowActionsProps {
  /** What the row is about, for those who hear the buttons. */
  of: string;
  isBusy: boolean;
  actions: readonly (RowAction | false)[];
}

export function RowActions({ of, isBusy, actions }: RowActionsProps) {
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      {actions.map(
        (one) =>
          one && (
            <Button
              key={one.label}
              size="compact-xs"
              variant="default"
              disabled={isBusy}
              title={one.title}
              aria-label={`${one.label}: ${of}`}
              onClick={one.act}
            >
              {one.label}
            </Button>
          ),
      )}
    </Group>
  );
}
