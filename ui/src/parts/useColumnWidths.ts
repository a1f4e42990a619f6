// The widths that somebody gave to the columns of a list; this browser keeps them.
import { useLocalStorage } from "@mantine/hooks";
import { useMemo } from "react";
import { boundedWidth } from "./grid-columns";

export interface ColumnWidths {
  chosen: Readonly<Record<string, number>>;
  /** `undefined`: as wide as it was at first. */
  set: (column: string, pixels: number | undefined) => void;
}

const NONE: Record<string, number> = {};

export function useColumnWidths(list: string): ColumnWidths {
  const [chosen, keep] = useLocalStorage<Record<string, number>>({
    key: `freezeframe.widths.${list}`,
    defaultValue: NONE,
    getInitialValueInEffect: false,
  });
  return useMemo(
    () => ({
      chosen,
      set: (column, pixels) =>
        keep(({ [column]: _, ...others }) =>
          pixels === undefined ? others : { ...others, [column]: boundedWidth(pixels) },
        ),
    }),
    [chosen, keep],
  );
}
