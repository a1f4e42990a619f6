// A text file as what it is: rows of a CSV file as a table, all else as text. Both can be searched.
import { SegmentedControl } from "@mantine/core";
import { useMemo } from "react";
import { usePanel } from "@/navigation/panel";
import { CsvGrid } from "./CsvGrid";
import { csvTable } from "./csv-table";
import { FileEditor } from "./FileEditor";

interface FileContentProps {
  path: string;
  text: string;
  etag: string;
  isReadOnly: boolean;
  isSealed: boolean;
  /** Whether somebody else saved while there is something unsaved here. */
  isBehind: boolean;
  onChanged: (isChanged: boolean) => void;
}

export function FileContent(props: FileContentProps) {
  const { search, go } = usePanel();
  const isCsv = /\.csv$/i.test(props.path);
  const isTable = isCsv && search.as !== "text";
  const table = useMemo(() => (isTable ? csvTable(props.text) : null), [isTable, props.text]);
  return (
    <>
      {isCsv && (
        <SegmentedControl
          size="xs"
          className="tight"
          aria-label="How the file is shown"
          value={isTable ? "table" : "text"}
          onChange={(value) => go({ as: value === "text" ? "text" : undefined, find: undefined })}
          data={[
            { value: "table", label: "Table" },
            { value: "text", label: props.isReadOnly ? "Text" : "Edit as text" },
          ]}
        />
      )}
      {table ? <CsvGrid path={props.path} table={table} /> : <FileEditor {...props} />}
    </>
  );
}
