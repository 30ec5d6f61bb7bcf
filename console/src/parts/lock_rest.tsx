/** The rest of a lock in seconds, and as a bar if its duration is known. */

import { seconds } from "../format";
import { lockShare } from "../strip_layout";

export function LockRest({ remainingMs, durationMs }: { remainingMs: number; durationMs: number | null }) {
  return (
    <span class="lock">
      {durationMs !== null && (
        <span class="lock-track" aria-hidden="true">
          <span style={{ width: `${lockShare(remainingMs, durationMs) * 100}%` }} />
        </span>
      )}
      <span class="lock-time">{seconds(remainingMs)}</span>
    </span>
  );
}
