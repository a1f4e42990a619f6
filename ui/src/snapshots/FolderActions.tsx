// The seed's four buttons: Upload, Create folder, Download, Delete. Who may not do one does not see it.
import { ActionIcon, Button, Menu } from "@mantine/core";
import { IconChevronDown, IconDownload, IconFolderPlus, IconTrash, IconUpload } from "@tabler/icons-react";
import { type DragEvent, type ReactNode, type RefObject, useRef, useState } from "react";
import { usePanel } from "@/navigation/panel";
import { NameDialog } from "@/parts/dialogs";
import { counted } from "@/parts/formats";
import { tellProblem } from "@/parts/toasts";
import { useReason } from "@/session/reason";
import { chosenFiles, droppedFiles, type PickedFile } from "@/uploads/dropped";
import { addUploads } from "@/uploads/queue";

interface FolderActionsProps {
  folder: string;
  chooser: RefObject<HTMLInputElement | null>;
  canWrite: boolean;
  canDelete: boolean;
  hasChosen: boolean;
  onCreateFolder: () => void;
  /** Undefined: the key may not open what is selected. */
  onDownload: (() => void) | undefined;
  onDelete: () => void;
}

export function FolderActions(props: FolderActionsProps) {
  const folderChooser = useRef<HTMLInputElement>(null);
  const uploading = useUploading(props.folder);
  function add(input: HTMLInputElement) {
    uploading.add(chosenFiles(input.files));
    input.value = "";
  }
  return (
    <>
      {uploading.dialog}
      {props.canWrite && (
        <>
          <input
            ref={props.chooser}
            type="file"
            multiple
            hidden
            aria-label="Files to upload"
            onChange={(event) => add(event.currentTarget)}
          />
          <input
            ref={folderChooser}
            type="file"
            hidden
            aria-label="Folder to upload"
            onChange={(event) => add(event.currentTarget)}
            {...{ webkitdirectory: "" }}
          />
          <Button.Group>
            <Button
              variant="filled"
              size="xs"
              px={10}
              leftSection={<IconUpload size={15} />}
              onClick={() => props.chooser.current?.click()}
            >
              Upload
            </Button>
            <Menu position="bottom-end">
              <Menu.Target>
                <ActionIcon
                  size={30}
                  variant="filled"
                  color="indigo"
                  aria-label="More ways to upload"
                  className="split-end"
                >
                  <IconChevronDown size={14} />
                </ActionIcon>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item onClick={() => props.chooser.current?.click()}>Upload files</Menu.Item>
                <Menu.Item onClick={() => folderChooser.current?.click()}>Upload a folder</Menu.Item>
              </Menu.Dropdown>
            </Menu>
          </Button.Group>
          <Button size="xs" px={10} leftSection={<IconFolderPlus size={15} />} onClick={props.onCreateFolder}>
            Create folder
          </Button>
        </>
      )}
      {props.onDownload && (
        <Button
          size="xs"
          px={10}
          leftSection={<IconDownload size={15} />}
          disabled={!props.hasChosen}
          onClick={props.onDownload}
        >
          Download
        </Button>
      )}
      {props.canDelete && (
        <Button
          size="xs"
          px={10}
          leftSection={<IconTrash size={15} />}
          disabled={!props.hasChosen}
          onClick={props.onDelete}
        >
          Delete
        </Button>
      )}
    </>
  );
}

/** Files and folders that are dropped anywhere on the list become uploads into the folder that is shown. */
export function DropZone({
  folder,
  isEnabled,
  children,
}: {
  folder: string;
  isEnabled: boolean;
  children: ReactNode;
}) {
  const { place } = usePanel();
  const uploading = useUploading(folder);
  const [isOver, setOver] = useState(false);
  const depth = useRef(0);

  function count(step: number) {
    // Entering a child leaves its parent, so the zone is left when all that was entered is.
    depth.current = Math.max(0, depth.current + step);
    setOver(depth.current > 0);
  }

  function onDrop(event: DragEvent) {
    event.preventDefault();
    depth.current = 0;
    setOver(false);
    droppedFiles(event.dataTransfer).then(uploading.add, tellProblem);
  }

  if (!isEnabled) return <div className="drop-zone">{children}</div>;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the Upload button does the same
    <div
      className="drop-zone"
      data-over={isOver ? `Upload into ${folder || place.tenant}` : undefined}
      onDragEnter={() => count(1)}
      onDragLeave={() => count(-1)}
      onDragOver={(event) => {
        event.preventDefault();
        event.dataTransfer.dropEffect = "copy";
      }}
      onDrop={onDrop}
    >
      {children}
      {uploading.dialog}
    </div>
  );
}

/** Uploads into a folder; where the service requires a reason it is asked for first. */
function useUploading(folder: string) {
  const { place } = usePanel();
  const { isRequired } = useReason();
  const [asked, setAsked] = useState<readonly PickedFile[]>([]);
  return {
    add: (files: readonly PickedFile[]) => {
      const those = files.map(({ path, file }) => ({ path: folder ? `${folder}/${path}` : path, file }));
      if (isRequired) setAsked(those);
      else addUploads(place, those);
    },
    dialog: asked.length > 0 && (
      <NameDialog
        title={`Upload ${counted(asked.length, "file")}`}
        label="Reason"
        action="Upload"
        onSubmit={async (message) => addUploads(place, asked, message)}
        onClose={() => setAsked([])}
      />
    ),
  };
}
