/** A record's state as a badge, and the legend of all states. */

import { LETTERS, MEANINGS, shownState, type ShownState } from "../states";

export function StateBadge({ state }: { state: ShownState }) {
  return (
    <span class="state">
      <span class={`letter ${state}`} aria-hidden="true">
        {LETTERS[state]}
      </span>
      {state}
    </span>
  );
}

export function StateOf({ range }: { range: { state: string; wait: string | null } }) {
  return <StateBadge state={shownState(range)} />;
}

/** The state of a group. A dot beside the word is filled while the group has members that work. */
export function GroupState({ state }: { state: string }) {
  return <span class={state === "stable" ? "tag good" : "tag"}>{state}</span>;
}

const IN_FLIGHT: ShownState[] = ["available", "waiting", "acquired", "acknowledged", "archiving", "archived"];

/** The states between the start and the end offset. */
export function Legend() {
  return (
    <ul class="legend" aria-label="States">
      {IN_FLIGHT.map((state) => (
        <li key={state} title={MEANINGS[state]}>
          <StateBadge state={state} />
        </li>
      ))}
      <li>
        <span class="lock-sample" aria-hidden="true" />
        rest of a lock
      </li>
    </ul>
  );
}
