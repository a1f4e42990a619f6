// Chips that leave some tenants in the list: those whose last job failed, that are stale, or changed today.
import { Button, Group } from "@mantine/core";
import { TENANT_CHIPS, type TenantChip } from "@/navigation/search";

export const CHIP_LABELS: Record<TenantChip, string> = {
  failed: "Failed",
  stale: "Stale",
  changed: "Changed today",
};
const HINTS: Record<TenantChip, string> = {
  failed: "The newest job failed, timed out or died",
  stale: "The last sync is longer ago than usual",
  changed: "Rows changed today (UTC)",
};

export function TenantChips(props: {
  only: TenantChip | undefined;
  onOnly: (only: TenantChip | undefined) => void;
}) {
  return (
    <Group gap={4} role="group" aria-label="Only tenants that are">
      {TENANT_CHIPS.map((chip) => (
        <Button
          key={chip}
          size="compact-sm"
          radius="xl"
          variant={chip === props.only ? "filled" : "default"}
          aria-pressed={chip === props.only}
          title={HINTS[chip]}
          onClick={() => props.onOnly(chip === props.only ? undefined : chip)}
        >
          {CHIP_LABELS[chip]}
        </Button>
      ))}
    </Group>
  );
}
