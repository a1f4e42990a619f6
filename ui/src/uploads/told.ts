// How far uploads have come, in words.
import { countText } from "@/parts/formats";
import { isUnderWay, type Upload } from "./queue";

export function toldAll(uploads: readonly Upload[]): string {
  const [done = 0, failed = 0, asked = 0] = ["done", "failed", "exists"].map(
    (state) => uploads.filter((one) => one.state === state).length,
  );
  if (uploads.some(isUnderWay) || asked > 0)
    return `Uploading: ${countText(done)} of ${countText(uploads.length)} done${asked > 0 ? `, ${countText(asked)} there already` : ""}`;
  return `${countText(done)} uploaded${failed > 0 ? `, ${countText(failed)} failed` : ""}`;
}
