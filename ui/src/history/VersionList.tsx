// Versions under the days that they are of; of a long list those exist that are seen.
//
// The Tab key stops at the list and at the controls of one version; arrows, Home and End go to another one.
import { Button } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { TenantVersion } from "@/api/types";
import { countText } from "@/parts/formats";
import { type Entry, type Folded, isFolded, withDays } from "./versions";

const HEIGHT_GUESS = 64;
const CONTROLS = ".timeline-item :is(button, a, input)";

interface VersionListProps {
  versions: readonly TenantVersion[];
  onNearEnd: () => void;
  children: (version: TenantVersion) => ReactNode;
}

export function VersionList({ versions, onNearEnd, children }: VersionListProps) {
  const scroller = useRef<HTMLElement>(null);
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const items = useMemo(() => withDays(versions, unfolded), [versions, unfolded]);
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
  const places = useMemo(() => items.flatMap((item, at) => (typeof item === "string" ? [] : [at])), [items]);
  const [chosen, setChosen] = useState(0);
  const active = places.includes(chosen) ? chosen : (places[0] ?? 0);
  // Set by a key: the version gets the focus once it is there.
  const isMoving = useRef(false);
  useEffect(() => {
    for (const control of scroller.current?.querySelectorAll<HTMLElement>(CONTROLS) ?? [])
      control.tabIndex = control.closest("[data-active]") ? 0 : -1;
    const version = scroller.current?.querySelector<HTMLElement>("[data-active] article");
    if (!isMoving.current || !version) return;
    isMoving.current = false;
    version.focus({ preventScroll: true });
  });

  function onKeyDown(event: KeyboardEvent) {
    const at = places.indexOf(active);
    const isIn = document.activeElement?.closest("[data-active]");
    const next = {
      ArrowDown: isIn ? at + 1 : at,
      ArrowUp: at - 1,
      Home: 0,
      End: places.length - 1,
    }[event.key];
    // A menu that is open has these keys for itself.
    if (next === undefined || event.defaultPrevented || document.activeElement?.ariaExpanded === "true")
      return;
    event.preventDefault();
    const place = places[Math.min(Math.max(next, 0), places.length - 1)] ?? 0;
    isMoving.current = true;
    setChosen(place);
    virtual.scrollToIndex(place);
    // The same version again: nothing is drawn anew.
    if (place === active) scroller.current?.querySelector<HTMLElement>("[data-active] article")?.focus();
  }

  return (
    <section
      ref={scroller}
      className="timeline"
      aria-label="Versions"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the list must scroll by keyboard
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div className="timeline-body" style={{ height: virtual.getTotalSize() }}>
        {shown.map(({ index, key, start }) => {
          const item = items[index];
          if (item === undefined) return null;
          return (
            <div
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              data-active={index === active || undefined}
              onFocusCapture={() => typeof item === "object" && setChosen(index)}
              className="timeline-item"
              style={{ transform: `translateY(${start}px)` }}
            >
              {typeof item === "string" ? (
                <div className="timeline-day">{item}</div>
              ) : isFolded(item) ? (
                <FoldedVersions
                  versions={item}
                  onUnfold={() => setUnfolded(new Set([...unfolded, ...item.map((one) => one.version)]))}
                />
              ) : (
                children(item)
              )}
            </div>
          );
        })}
      </div>
    </section>
  );
}

function FoldedVersions({ versions, onUnfold }: { versions: Folded; onUnfold: () => void }) {
  const [newest, oldest] = [versions[0]?.version, versions.at(-1)?.version];
  return (
    <article className="timeline-folded" aria-label={`Versions ${oldest} to ${newest}`} tabIndex={-1}>
      <span>
        {countText(versions.length)} jobs ran and changed nothing (versions {oldest} to {newest})
      </span>
      <Button size="compact-xs" onClick={onUnfold}>
        Show
      </Button>
    </article>
  );
}

function keyOf(item: Entry | undefined): string {
  if (isFolded(item)) return `folded ${item[0]?.version}`;
  return typeof item === "object" ? `version ${item.version}` : String(item);
}
