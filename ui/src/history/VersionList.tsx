// Versions under the days that they are of; of a long list those exist that are seen.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef } from "react";
import type { TenantVersion } from "@/api/types";
import { dayText } from "@/parts/formats";

const HEIGHT_GUESS = 64;

interface VersionListProps {
  versions: readonly TenantVersion[];
  onNearEnd: () => void;
  children: (version: TenantVersion) => ReactNode;
}

export function VersionList({ versions, onNearEnd, children }: VersionListProps) {
  const scroller = useRef<HTMLElement>(null);
  const items = useMemo(() => withDays(versions), [versions]);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => HEIGHT_GUESS,
    getItemKey: (index) => keyOf(items[index]),
    overscan: 8,
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  const near = useRef(onNearEnd);
  near.current = onNearEnd;
  useEffect(() => {
    if (last >= items.length - 10) near.current();
  }, [last, items.length]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the list must scroll by keyboard
    <section ref={scroller} className="timeline" aria-label="Versions" tabIndex={0}>
      <div className="timeline-body" style={{ height: virtual.getTotalSize() }}>
        {shown.map(({ index, key, start }) => {
          const item = items[index];
          if (item === undefined) return null;
          return (
            <div
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              className="timeline-item"
              style={{ transform: `translateY(${start}px)` }}
            >
              {typeof item === "string" ? <div className="timeline-day">{item}</div> : children(item)}
            </div>
          );
        })}
      </div>
    </section>
  );
}

/** The versions, and before the first one of each day its name. */
function withDays(versions: readonly TenantVersion[]): (string | TenantVersion)[] {
  let before = "";
  return versions.flatMap((version) => {
    const day = dayText(version.timestamp);
    const isNew = day !== before;
    before = day;
    return isNew ? [day, version] : [version];
  });
}

function keyOf(item: string | TenantVersion | undefined): string {
  return typeof item === "object" ? `version ${item.version}` : String(item);
}
