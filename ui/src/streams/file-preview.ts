// The first rows of a CSV file, read in the browser so that one sees what one is about to import (pure).

export interface FilePreview {
  columns: string[];
  rows: string[][];
}

const ROWS_MAX = 5;

/** `isWhole` false: the text is the beginning of a longer file, so its last line may be cut. */
export function previewCsv(text: string, isWhole: boolean): FilePreview {
  const records = csvRecords(text.replace(/^\uFEFF/, ""));
  if (!isWhole) records.pop();
  const [columns = [], ...rows] = records;
  return { columns, rows: rows.slice(0, ROWS_MAX) };
}

function csvRecords(text: string): string[][] {
  const records: string[][] = [];
  let fields: string[] = [];
  let field = "";
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] as string;
    if (isQuoted) {
      if (letter !== '"') field += letter;
      else if (text[at + 1] === '"') {
        field += '"';
        at += 1;
      } else isQuoted = false;
    } else if (letter === '"') isQuoted = true;
    else if (letter === ",") {
      fields.push(field);
      field = "";
    } else if (letter === "\n") {
      records.push([...fields, field.replace(/\r$/, "")]);
      fields = [];
      field = "";
    } else field += letter;
  }
  if (field !== "" || fields.length > 0) records.push([...fields, field]);
  return records;
}
