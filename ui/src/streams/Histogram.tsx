// The shape of a column in some pixels: ranges in order, or its most frequent values.
import { Tooltip } from "@mantine/core";
import type { ColumnStatistics, StatisticsBar } from "@/api/types";
import { valueText } from "@/parts/Cell";
import { countText } from "@/parts/formats";

const WIDTH = 108;
const HEIGHT = 22;
const GAP = 1;
const TOLD_MAX = 8;

export function Histogram({ column }: { column: ColumnStatistics }) {
  const { bars } = column;
  if (bars.length === 0) return null;
  const most = Math.max(...bars.map((bar) => bar.count));
  const width = WIDTH / Math.max(bars.length, 6);
  const lines = bars.slice(0, TOLD_MAX).map((bar) => `${nameOf(bar)}: ${countText(bar.count)}`);
  const label = bars.length > TOLD_MAX ? rangesText(bars) : lines.join("\n");
  return (
    <Tooltip label={<span className="lines">{label}</span>}>
      <svg
        className="histogram"
        width={WIDTH}
        height={HEIGHT}
        role="img"
        aria-label={`${column.name}: ${label.replaceAll("\n", ", ")}`}
      >
        {bars.map((bar, place) => {
          const height = bar.count === 0 ? 0 : Math.max(1.5, (HEIGHT * bar.count) / most);
          return (
            <rect
              key={`${String(bar.low)} ${String(bar.high)}`}
              x={place * width}
              y={HEIGHT - height}
              width={width - GAP}
              height={height}
              data-kind={isRange(bar) ? "range" : "value"}
            />
          );
        })}
      </svg>
    </Tooltip>
  );
}

function isRange(bar: StatisticsBar): boolean {
  return bar.low !== bar.high;
}

function nameOf(bar: StatisticsBar): string {
  return isRange(bar) ? `${shortText(bar.low)} to ${shortText(bar.high)}` : valueText(bar.low);
}

/** Ranges are told by where most of them lie, not one by one. */
function rangesText(bars: readonly StatisticsBar[]): string {
  const top = [...bars].sort((one, other) => other.count - one.count).slice(0, 3);
  return top.map((bar) => `${nameOf(bar)}: ${countText(bar.count)}`).join("\n");
}

function shortText(value: unknown): string {
  return typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(4) : valueText(value);
}
