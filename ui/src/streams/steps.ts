// Where one comes to from a version of a stream, back and forth (pure).

export interface Steps {
  /** The version that made the stream what is shown; undefined where it is not known. */
  current: number | undefined;
  earlier: number | undefined;
  later: number | "now" | undefined;
}

/** `versions` are those that changed the stream, the newest first; `shown` undefined is now. */
export function steps(versions: readonly number[], shown: number | undefined): Steps {
  const place = shown === undefined ? 0 : versions.findIndex((one) => one <= shown);
  if (place < 0) return { current: undefined, earlier: undefined, later: versions.at(-1) };
  const later = shown === undefined ? undefined : place <= 1 ? "now" : versions[place - 1];
  return { current: versions[place], earlier: versions[place + 1], later };
}
