// How many items are selected, and what can be done with them beside Download and Delete above the list.
import { Button } from "@mantine/core";
import { countText } from "@/parts/formats";

interface SelectionBarProps {
  count: number;
  /** Undefined: not possible with this selection. */
  onMove?: (() => void) | undefined;
  onSeal?: (() => void) | undefined;
  isSealing: boolean;
  onClear: () => void;
}

export function SelectionBar({ count, onMove, onSeal, isSealing, onClear }: SelectionBarProps) {
  return (
    <section className="selection-bar" aria-label="Selection">
      <span>{countText(count)} selected</span>
      {onMove && (
        <Button size="compact-sm" variant="default" onClick={onMove}>
          Rename or move
        </Button>
      )}
      {onSeal && (
        <Button size="compact-sm" variant="default" loading={isSealing} onClick={onSeal}>
          Seal
        </Button>
      )}
      <Button size="compact-sm" variant="subtle" onClick={onClear}>
        Clear
      </Button>
    </section>
  );
}
