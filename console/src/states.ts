/** The states of records as the console shows them: each has a letter and a word beside its colour. Pure. */

import type { RecordRange } from "./api";

export type ShownState =
  | "new"
  | "available"
  | "waiting"
  | "acquired"
  | "acknowledged"
  | "archiving"
  | "archived"
  | "passed";

export const LETTERS: Record<ShownState, string> = {
  new: "N",
  available: "A",
  waiting: "W",
  acquired: "L",
  acknowledged: "K",
  archiving: "G",
  archived: "X",
  passed: "P",
};

export const MEANINGS: Record<ShownState, string> = {
  new: "not delivered yet",
  available: "ready for delivery",
  waiting: "not due yet",
  acquired: "locked by a member",
  acknowledged: "accepted",
  archiving: "goes to dead letters",
  archived: "rejected, or out of deliveries",
  passed: "behind the start offset",
};

/** An available record that a fetch does not get now is shown as waiting. */
export function shownState(range: Pick<RecordRange, "state" | "wait">): ShownState {
  if (range.state === "available" && range.wait !== null) return "waiting";
  return range.state in LETTERS ? (range.state as ShownState) : "passed";
}
