/** The record under the pointer, or at the keyboard's place, beside the strip. */

import type { RecordRange } from "../api";
import { count } from "../format";
import { LockRest } from "./lock_rest";
import { StateOf } from "./state";

/** Screen readers hear the value of the slider instead. `place` is the offset's, as a part of the strip's width. */
export function StripTip({ offset, range, place, lockDurationMs }: {
  offset: number;
  range: RecordRange | null;
  place: number;
  lockDurationMs: number;
}) {
  const left = `${place * 100}%`;
  const shift = `translateX(-${place * 100}%)`;
  return (
    <div class="tip" aria-hidden="true" style={{ left, transform: shift }}>
      <div class="tip-head">
        <strong>{count(offset)}</strong>
        {range === null ? <span class="quiet">no record</span> : <StateOf range={range} />}
      </div>
      {range !== null && (
        <dl>
          <Line label="Deliveries" value={count(range.delivery_count)} />
          {range.wait !== null && <Line label="Waits for" value={range.wait} />}
          {range.holder !== null && <Line label="Held by" value={range.holder.member_id} />}
          {range.holder !== null && (
            <div>
              <dt>Lock ends in</dt>
              <dd>
                <LockRest remainingMs={range.holder.lock_remaining_ms} durationMs={lockDurationMs} />
              </dd>
            </div>
          )}
        </dl>
      )}
    </div>
  );
}

function Line({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}
