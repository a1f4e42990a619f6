// What an import would do: rows by what becomes of them, columns that are not as they were, some rows.
import { Alert, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { ImportPreview } from "@/api/types";
import { ChangedRowsTable } from "@/history/ChangedRowsTable";
import { countText } from "@/parts/formats";

const FATE_TEXTS = {
  known: "",
  new: "new column",
  "other type": "another type than the stream's",
  "not in the file": "not in the file: keeps its values",
} as const;

interface ImportEffectProps {
  effect: ImportPreview;
  mode: "upsert" | "full";
  /** Whether only the beginning of the file was looked at. */
  isBeginning: boolean;
}

export function ImportEffect({ effect, mode, isBeginning }: ImportEffectProps) {
  return (
    <>
      {effect.problem && (
        <Alert
          color="red"
          variant="light"
          role="alert"
          icon={<IconAlertTriangle size={18} />}
          title={effect.problem.title}
        >
          <Text size="sm">{remedyOf(effect.problem)}</Text>
        </Alert>
      )}
      {effect.counts ? (
        <dl className="import-counts">
          <Count name="New" count={effect.counts.inserted} mark="mark-new" />
          <Count name="Updated" count={effect.counts.updated} mark="mark-changed" />
          <Count name="Unchanged" count={effect.counts.unchanged} mark="" />
          {mode === "full" && <Count name="Deleted" count={effect.counts.deleted} mark="mark-gone" />}
        </dl>
      ) : (
        effect.uncounted && (
          <Text size="sm" c="dimmed" role="status">
            {effect.uncounted}
          </Text>
        )
      )}
      <Columns effect={effect} isBeginning={isBeginning} />
      {effect.examples.length > 0 && (
        <ChangedRowsTable label="Rows that change" rows={effect.examples} keyNames={effect.key} />
      )}
    </>
  );
}

function Count({ name, count, mark }: { name: string; count: number; mark: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className={count > 0 ? mark : "dim"}>{countText(count)}</dd>
    </div>
  );
}

function Columns({ effect, isBeginning }: { effect: ImportPreview; isBeginning: boolean }) {
  const odd = effect.columns.filter((one) => one.fate !== "known");
  const known = effect.columns.length - odd.length;
  return (
    <div>
      <Text size="sm">
        {isBeginning && "The first "}
        {countText(effect.rows)} rows{isBeginning && " have"}
        {!isBeginning && " of"} {countText(effect.columns.filter((one) => one.file_type !== null).length)}{" "}
        columns
        {effect.key.length > 0 && `, by ${effect.key.join(", ")}`}.{" "}
        {odd.length === 0 ? "All columns match the stream." : `${countText(known)} match the stream.`}
      </Text>
      {odd.length > 0 && (
        <ul className="import-columns">
          {odd.map((one) => (
            <li key={one.name}>
              <span className={one.fate === "other type" ? "mark-gone" : undefined}>
                <strong>{one.name}</strong> {FATE_TEXTS[one.fate]}
              </span>{" "}
              <span className="dim mono">
                {one.fate === "other type"
                  ? `${one.stream_type} → ${one.file_type}`
                  : (one.file_type ?? one.stream_type)}
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The library's remedy is an option of a call, which nobody makes here. */
function remedyOf(problem: NonNullable<ImportPreview["problem"]>): string {
  if (problem.code === "TOO_MANY_DELETIONS")
    return "The file may be truncated or filtered. If the deletions are intended, import it in a script with the option that allows them.";
  return `${problem.cause} ${problem.remedy}`;
}
