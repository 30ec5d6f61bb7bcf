/** The columns of tables of ranges, without the one that names the range. */

import type { RecordRange } from "../api";
import { count } from "../format";
import { LockRest } from "../parts/lock_rest";
import { StateOf } from "../parts/state";
import type { Column } from "../parts/table";

/** `lockDurationMs` is null if it is not known; then locks have no bars. With `ranges`, columns that are empty for
 * all of them are left out; a live table keeps its columns. */
export function rangeColumns(lockDurationMs: number | null, ranges?: readonly RecordRange[]): Column<RecordRange>[] {
  const hasHolders = ranges === undefined || ranges.some((range) => range.holder !== null);
  const hasWaits = ranges === undefined || ranges.some((range) => range.wait !== null);
  return [
    { title: "State", cell: (range) => <StateOf range={range} /> },
    { title: "Deliveries", isNumber: true, cell: (range) => count(range.delivery_count) },
    ...(hasHolders ? [holderColumn(lockDurationMs)] : []),
    ...(hasWaits ? [WAIT] : []),
  ];
}

const WAIT: Column<RecordRange> = { title: "Waits for", cell: (range) => range.wait ?? "" };

function holderColumn(lockDurationMs: number | null): Column<RecordRange> {
  return {
    title: "Held by, lock ends in",
    cell: ({ holder }) =>
      holder === null ? (
        ""
      ) : (
        <span class="holder">
          <code>{holder.member_id}</code>
          {holder.client_id !== null && <small>{holder.client_id}</small>}
          <LockRest remainingMs={holder.lock_remaining_ms} durationMs={lockDurationMs} />
        </span>
      ),
  };
}
