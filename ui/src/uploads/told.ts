// The progress of uploads in words.
import { bytesText, countText, durationText } from "@/parts/formats";
import { isUnderWay, type Upload } from "./queue";

const WINDOW_MS = 5000;
let samples: { at: number; sent: number; of: string }[] = [];

export function toldAll(uploads: readonly Upload[], now: number = performance.now()): string {
  const of = (state: Upload["state"]) => uploads.filter((one) => one.state === state).length;
  const [done, failed, asked] = [of("done"), of("failed"), of("exists")];
  if (!uploads.some(isUnderWay) && asked === 0)
    return `${countText(done)} uploaded${failed > 0 ? `, ${countText(failed)} failed` : ""}`;
  const arrived = done + of("sent") + of("saving");
  const bytes = sum(uploads.map((one) => one.file.size));
  const sent = sum(uploads.map((one) => (one.state === "done" ? one.file.size : one.sent)));
  const seconds = secondsLeft(uploads, bytes, sent, now);
  const parts = [
    `Uploading: ${countText(arrived)} of ${countText(uploads.length)} files`,
    `${bytesText(sent)} of ${bytesText(bytes)}`,
    seconds !== undefined && `${durationText(Math.ceil(seconds))} left`,
    asked > 0 && `${countText(asked)} already exist`,
    failed > 0 && `${countText(failed)} failed`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** From the bytes of the last seconds: nothing is sent while the service is away, so nothing is promised then. */
function secondsLeft(uploads: readonly Upload[], bytes: number, sent: number, now: number) {
  const of = uploads[0] ? `${uploads[0].place.environment}/${uploads[0].place.tenant}` : "";
  samples = [...samples.filter((one) => one.of === of && now - one.at < WINDOW_MS), { at: now, sent, of }];
  const [first] = samples;
  if (!first || now - first.at < 1000 || sent <= first.sent) return undefined;
  return (bytes - sent) / ((sent - first.sent) / ((now - first.at) / 1000));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
