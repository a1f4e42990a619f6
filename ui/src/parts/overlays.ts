/** Where menus and lists of choices are drawn: in the page's main part, which screen readers can name. */
export const OVERLAYS = "overlays";
