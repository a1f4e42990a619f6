// The way from the tenant's own folder to what is open; each part leads back to it.
import { IconChevronRight } from "@tabler/icons-react";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { nameText } from "@/parts/formats";
import { crumbsOf, lastPart } from "./items";

export function Breadcrumb() {
  const { search, go } = usePanel();
  const folder = search.path ?? "";
  const crumbs = [{ name: "All", path: "" }, ...crumbsOf(folder)];
  const open = search.stream ?? (search.file ? lastPart(search.file) : undefined);
  return (
    <nav className="crumbs" aria-label="Folders" data-deep={folder !== "" || undefined}>
      {crumbs.map((crumb, depth) => (
        <span key={crumb.path} className="crumbs">
          {depth > 0 && <IconChevronRight size={13} aria-hidden />}
          <button
            type="button"
            className="crumb"
            title={crumb.name}
            aria-current={!open && crumb.path === folder ? "page" : undefined}
            onClick={() => go({ ...NOTHING_OPEN, path: crumb.path || undefined })}
          >
            {nameText(crumb.name)}
          </button>
        </span>
      ))}
      {open && (
        <span className="crumbs">
          <IconChevronRight size={13} aria-hidden />
          <span className="crumb" title={open} aria-current="page">
            {nameText(open)}
          </span>
        </span>
      )}
    </nav>
  );
}
