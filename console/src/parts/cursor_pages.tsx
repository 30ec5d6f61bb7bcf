/** The way through a list of which only one page is loaded: forwards, and back to the first one. */

export function CursorPages({ cursor, next, setCursor, first, further }: {
  /** Of the shown page; empty for the first one. */
  cursor: string;
  next: string | null;
  setCursor: (cursor: string) => void;
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
