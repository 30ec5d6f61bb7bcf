/** The way through a list of which only one page is loaded: forwards, and back to the first one. */

export function CursorPages({ page: [cursor, setCursor], next, first, further }: {
  /** The cursor of the shown page, which is empty for the first one, and its setter. */
  page: [string, (cursor: string) => void];
  next: string | null;
  /** The words on the buttons. */
  first: string;
  further: string;
}) {
  if (cursor === "" && next === null) return null;
  return (
    <p class="buttons pages">
      <button type="button" disabled={cursor === ""} onClick={() => setCursor("")}>
        {first}
      </button>
      <button type="button" disabled={next === null} onClick={() => setCursor(next ?? "")}>
        {further}
      </button>
    </p>
  );
}
