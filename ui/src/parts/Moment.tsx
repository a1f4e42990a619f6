// A moment as people read it, with the exact times in UTC and here on hover.
import { Tooltip } from "@mantine/core";
import { agoText, exactText } from "./formats";
import { useNow } from "./now";

export function Moment({ at, className }: { at: string; className?: string }) {
  const now = useNow();
  const exact = `${exactText(at, "UTC")} UTC · ${exactText(at)} here`;
  return (
    <Tooltip label={exact}>
      <time dateTime={at} className={className}>
        {agoText(at, now)}
      </time>
    </Tooltip>
  );
}
