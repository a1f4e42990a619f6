// The files of what was dropped or chosen, folders included, with their paths inside of it.

export interface PickedFile {
  path: string;
  file: File;
}

/** The files of a drop, read from its folders to the bottom. */
export async function droppedFiles(data: DataTransfer): Promise<PickedFile[]> {
  // The entries must be taken before anything is awaited: afterwards the list is empty.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.() ?? null);
  if (entries.every((entry) => entry === null))
    return [...data.files].map((file) => ({ path: file.name, file }));
  const found = await Promise.all(entries.map((entry) => (entry ? filesOf(entry) : [])));
  return found.flat();
}

/** The files of an `input`, with the folder that was chosen as the first part of their paths. */
export function chosenFiles(files: FileList | null): PickedFile[] {
  return [...(files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

async function filesOf(entry: FileSystemEntry): Promise<PickedFile[]> {
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    );
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: PickedFile[] = [];
  for (;;) {
    // A reader gives at most a hundred entries at a time, and none when there are no more.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return found;
    for (const files of await Promise.all(some.map(filesOf))) found.push(...files);
  }
}
