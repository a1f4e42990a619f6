// The records of a CSV file as the console shows them, read in the browser (pure).

export interface CsvTable {
  columns: string[];
  rows: string[][];
}

/** The first record names the columns; a record that is longer than it gets columns without a name. */
export function csvTable(text: string): CsvTable {
  const [head = [], ...rows] = csvRecords(text.replace(/^\uFEFF/, ""));
  const width = rows.reduce((most, row) => Math.max(most, row.length), head.length);
  return { columns: Array.from({ length: width }, (_, place) => head[place] ?? ""), rows };
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
