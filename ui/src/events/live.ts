// Whether the service tells by itself what happens; while it does not, lists that change look by themselves.
import { followed } from "@/parts/followed";

const LOOKED_EVERY_MS = 4_000;
const live = followed(false);

export const setLive = live.set;

/** How often what changes has to be read again: not at all while the service tells of changes. */
export function useLookAgain(): number | false {
  return live.useValue() ? false : LOOKED_EVERY_MS;
}
