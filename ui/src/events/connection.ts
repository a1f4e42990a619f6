// Whether the service answers, and when it did last: that is the age of what the page shows.
import { followed } from "@/parts/followed";

let lastAnswer = Date.now();
const lost = followed<number | undefined>(undefined);

export function noteAnswer(): void {
  lastAnswer = Date.now();
  lost.set(undefined);
}

export function noteUnreachable(): void {
  lost.set(lost.get() ?? lastAnswer);
}

/** When the service answered last, in milliseconds, while it does not; else undefined. */
export const useLostSince = lost.useValue;
