// Whether the session of who looks at the page has ended: the page stays, and a dialog asks to sign in again.
import { followed } from "@/parts/followed";

export const { set: setEnded, useValue: useEnded } = followed(false);
