// What is selected, and what can be done with all of it at once.
import { Button } from "@mantine/core";
import { countText } from "@/parts/formats";

interface SelectionBarProps {
  count: number;
  canDelete: boolean;
  onDownload: () => void;
  onDelete: () => void;
  /** Only where one file or folder is selected that may be moved. */
  onMove: (() => void) | undefined;
  onClear: () => void;
}

export function SelectionBar({ count, canDelete, onDownload, onDelete, onMove, onClear }: SelectionBarProps) {
  return (
    <section className="selection-bar" aria-label="Selection">
      <span role="status">{countText(count)} selected</span>
      <Button size="compact-sm" variant="default" onClick={onDownload}>
        {count > 1 ? "Download zip" : "Download"}
      </Button>
      {onMove && (
        <Button size="compact-sm" variant="default" onClick={onMove}>
          Rename or move
        </Button>
      )}
      {canDelete && (
        <Button size="compact-sm" variant="default" onClick={onDelete}>
          Delete
        </Button>
      )}
      <Button size="compact-sm" variant="subtle" ml="auto" onClick={onClear}>
        Clear
      </Button>
    </section>
  );
}
