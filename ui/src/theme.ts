// One accent, neutral greys, 13 to 14 px text; greys dark enough for a contrast of 4.5 in both schemes.
import { type CSSVariablesResolver, createTheme } from "@mantine/core";
import { OVERLAYS } from "@/parts/page";

// The list of choices scrolls itself: it belongs to its field, while a box around it would be a stop for nobody.
const choices = { defaultProps: { withScrollArea: false, classNames: { options: "choices" } } };

export const theme = createTheme({
  primaryColor: "indigo",
  primaryShade: { light: 8, dark: 8 },
  defaultRadius: "sm",
  fontFamily: 'Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace:
    'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace',
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    // Locking the scroll bar would put a style element into the page, and nothing behind a panel scrolls here.
    Modal: { defaultProps: { lockScroll: false, closeButtonProps: { "aria-label": "Close" } } },
    Drawer: {
      defaultProps: { lockScroll: false, closeButtonProps: { "aria-label": "Close" } },
    },
    // What names a dialog is no banner of the page.
    ModalHeader: { defaultProps: { role: "presentation" } },
    DrawerHeader: { defaultProps: { role: "presentation" } },
    // The first entry has the focus, and not a place before it that is no entry.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    Popover: { defaultProps: { portalProps: { target: `#${OVERLAYS}` } } },
    Autocomplete: choices,
    MultiSelect: choices,
    Select: choices,
    TagsInput: choices,
    // Most buttons are quiet and small; what a page or dialog is for is `filled`.
    Button: { defaultProps: { size: "compact-sm", variant: "default" } },
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray" } },
    Text: { defaultProps: { size: "sm" } },
    // As the grids are: one border, a grey head, rows of one height.
    Table: {
      defaultProps: { withTableBorder: true, verticalSpacing: 8, horizontalSpacing: 10, fz: 13 },
      classNames: { thead: "table-head" },
    },
    Tooltip: {
      defaultProps: { openDelay: 400, events: { hover: true, focus: true, touch: false } },
    },
  },
});

export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#59606a",
    "--mantine-color-placeholder": "#646b75",
    "--mantine-color-error": "#c92a2a",
    "--mantine-color-red-outline": "#c92a2a",
    "--console-line": "#e3e6ea",
    "--console-shade": "#f6f7f9",
    "--console-active": "#e9eefc",
    "--console-new": "#14693c",
    "--console-changed": "#1c63c7",
    "--console-gone": "#b92020",
    "--console-new-back": "#e3f6ea",
    "--console-changed-back": "#e5effd",
    "--console-gone-back": "#fdeaea",
    "--console-past": "#fff3d6",
    "--console-past-text": "#6b4a00",
  },
  dark: {
    "--mantine-color-dimmed": "#a7adb6",
    "--mantine-color-placeholder": "#9aa1ab",
    "--mantine-color-error": "#ff8787",
    "--console-line": "#3a3d42",
    "--console-shade": "#1f2225",
    "--console-active": "#2a3358",
    "--console-new": "#5fd394",
    "--console-changed": "#7fb2ff",
    "--console-gone": "#ff8f8f",
    "--console-new-back": "#17351f",
    "--console-changed-back": "#182c4a",
    "--console-gone-back": "#421f1f",
    "--console-past": "#4a3607",
    "--console-past-text": "#ffdf94",
  },
});
