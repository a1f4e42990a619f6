// A job's log by server-sent events: what is there at once, the rest as it is written.
import { useEffect, useRef, useState } from "react";
import { type Place, tenantAddress } from "@/api/client";

const FINAL = new Set(["succeeded", "held", "failed", "cancelled", "timed_out", "dead"]);
const LINES_MAX = 20_000;

/** The lines so far; nothing is asked for until `isThere`. */
export function useJobLog(
  place: Place,
  jobId: string,
  isThere: boolean,
  onStatus: () => void,
): readonly string[] {
  const [lines, setLines] = useState<readonly string[]>([]);
  const told = useRef(onStatus);
  told.current = onStatus;
  const address = `${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}/logs`;
  useEffect(() => {
    setLines([]);
    if (!isThere) return;
    const waiting: string[] = [];
    const events = new EventSource(address);
    // Many lines come in one go; the page is drawn once for all of them.
    const timer = setInterval(() => {
      const fresh = waiting.splice(0);
      if (fresh.length > 0) setLines((before) => [...before, ...fresh].slice(-LINES_MAX));
    }, 100);
    events.addEventListener("line", (event) => waiting.push(String(event.data)));
    events.addEventListener("status", (event) => {
      told.current();
      if (FINAL.has(String(event.data))) events.close();
    });
    return () => {
      events.close();
      clearInterval(timer);
    };
  }, [address, isThere]);
  return lines;
}
