// A moment as people read it, with the exact times in UTC and here on hover.
import { Tooltip } from "@mantine/core";
import { agoText, dateText, exactText } from "./formats";
import { useNow } from "./now";

/** The width of a grid's column of moments with dates, which a narrow grid leaves out. */
export const DATED = "clamp(84px, 40cqi - 200px, 168px)";

interface MomentProps {
  at: string;
  className?: string;
  /** Whether the date or the time of day stands before it, where the screen is wide enough. */
  isDated?: boolean;
}

export function Moment({ at, className, isDated = false }: MomentProps) {
  const now = useNow();
  const exact = `${exactText(at, "UTC")} UTC · ${exactText(at)} here`;
  return (
    <Tooltip label={exact}>
      <time dateTime={at} className={className}>
        {isDated && <span className="moment-date">{dateText(at, new Date(now))} · </span>}
        {agoText(at, now)}
      </time>
    </Tooltip>
  );
}
