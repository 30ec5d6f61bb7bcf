/** A table, some rows at a time. Numbers are right-aligned.
 *
 * A narrow screen shows each row as a block of lines with their titles. The roles are written out, because some
 * browsers forget them then.
 */

import type { ComponentChildren, Key } from "preact";
import { useState } from "preact/hooks";

import { count } from "../format";

/** The rows that are shown at a time. */
export const ROWS_MAX = 50;

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ComponentChildren;
  isNumber?: boolean;
  /** The cell names its row. */
  isHead?: boolean;
}

interface TableProps<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => Key;
}

export function Table<Row>({ caption, columns, rows, keyOf }: TableProps<Row>) {
  const [wanted, setFirst] = useState(0);
  const first = wanted < rows.length ? wanted : 0;
  return (
    <>
      <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
        <table role="table">
          <caption class="unseen">{caption}</caption>
          <thead role="rowgroup">
            <tr role="row">
              {columns.map((column) => (
                <th key={column.title} role="columnheader" scope="col" class={column.isNumber ? "number" : ""}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {rows.slice(first, first + ROWS_MAX).map((row) => (
              <tr key={keyOf(row)} role="row">
                {columns.map((column) => (
                  <Cell key={column.title} column={column} row={row} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > ROWS_MAX && <RowPages caption={caption} first={first} total={rows.length} setFirst={setFirst} />}
    </>
  );
}

function Cell<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  const content = column.cell(row);
  const isEmpty = content === "" || content === null;
  const style = [column.isNumber ? "number" : "", isEmpty ? "blank" : ""].join(" ").trim();
  return column.isHead ? (
    <th role="rowheader" scope="row" class={style}>
      {content}
    </th>
  ) : (
    <td role="cell" class={style} data-title={column.title}>
      <div>{content}</div>
    </td>
  );
}

function RowPages({ caption, first, total, setFirst }: {
  caption: string;
  first: number;
  total: number;
  setFirst: (first: number) => void;
}) {
  const last = Math.min(first + ROWS_MAX, total);
  return (
    <nav class="pages" aria-label={`Pages: ${caption}`}>
      <button type="button" disabled={first === 0} onClick={() => setFirst(first - ROWS_MAX)}>
        Previous
      </button>
      <span role="status">
        {count(first + 1)}–{count(last)} of {count(total)}
      </span>
      <button type="button" disabled={last === total} onClick={() => setFirst(first + ROWS_MAX)}>
        Next
      </button>
    </nav>
  );
}
