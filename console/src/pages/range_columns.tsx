/** The columns of tables of ranges, without the one that names the range, and those of any row with a state. */

import type { RecordRange } from "../api";
import { count } from "../format";
import { LockRest } from "../parts/lock_rest";
import { Time } from "../parts/notices";
import { StateOf } from "../parts/state";
import type { Column } from "../parts/table";

/** `lockDurationMs` is null if it is not known; then locks have no bars. With `ranges`, columns that are empty for
 * all of them are left out; a live table keeps its columns. */
export function rangeColumns(lockDurationMs: number | null, ranges?: readonly RecordRange[]): Column<RecordRange>[] {
  const hasHolders = ranges === undefined || ranges.some((range) => range.holder !== null);
  const hasWaits = ranges === undefined || ranges.some((range) => range.wait !== null);
  return [
    STATE,
    DELIVERIES,
    ...(hasHolders ? [holderColumn(lockDurationMs)] : []),
    ...(hasWaits ? [WAIT] : []),
  ];
}

/** A range, or a past change of one, which waits for nothing. */
interface Stated {
  state: string;
  wait?: string | null;
  delivery_count: number | null;
}

export const STATE: Column<Stated> = {
  title: "State",
  cell: ({ state, wait = null }) => <StateOf range={{ state, wait }} />,
};

export const DELIVERIES: Column<Stated> = {
  title: "Deliveries",
  isNumber: true,
  cell: (row) => count(row.delivery_count),
};

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
          <small>
            {holder.client_id !== null && `${holder.client_id}, `}acquired <Time timestampMs={holder.acquired_ms} />
          </small>
          <LockRest remainingMs={holder.lock_remaining_ms} durationMs={lockDurationMs} />
        </span>
      ),
  };
}
