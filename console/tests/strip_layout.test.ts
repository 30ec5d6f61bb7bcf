import assert from "node:assert/strict";
import { test } from "node:test";

import type { RecordRange } from "../src/api";
import {
  boxesOf,
  kept,
  lockShare,
  middleOf,
  offsetAt,
  OFFSETS_MIN,
  rangeAt,
  showing,
  size,
  spanned,
  zoomed,
} from "../src/strip_layout";

function range(first: number, last: number, state = "acquired", wait: string | null = null): RecordRange {
  return {
    first_offset: first,
    last_offset: last,
    state,
    delivery_count: 1,
    wait,
    holder: null,
    last_change: null,
  };
}

const RANGES = [range(100, 149), range(150, 150, "available", "due"), range(160, 199, "archived")];
const BOUNDS = { first: 100, last: 199 };
const LOCK_MS = 30_000;

test("a box has the place and the width of its offsets", () => {
  assert.deepEqual(boxesOf(RANGES, BOUNDS, 1000, LOCK_MS), [
    { x: 0, width: 500, state: "acquired", lockShare: null },
    { x: 500, width: 10, state: "waiting", lockShare: null },
    { x: 600, width: 400, state: "archived", lockShare: null },
  ]);
});

test("a box is cut at the ends of the window, and one outside is left out", () => {
  assert.deepEqual(boxesOf(RANGES, { first: 140, last: 159 }, 200, LOCK_MS), [
    { x: 0, width: 100, state: "acquired", lockShare: null },
    { x: 100, width: 10, state: "waiting", lockShare: null },
  ]);
});

test("a locked box has the rest of its lock", () => {
  const holder = { member_id: "m", client_id: null, client_host: null, acquired_ms: 0, lock_deadline_ms: 0, lock_remaining_ms: 7_500 };
  const [box] = boxesOf([{ ...range(100, 100), holder }], BOUNDS, 1000, LOCK_MS);
  assert.equal(box?.lockShare, 0.25);
});

test("the rest of a lock is between nothing and all", () => {
  for (const [remaining, share] of [[-5, 0], [0, 0], [15_000, 0.5], [60_000, 1]] as const) {
    assert.equal(lockShare(remaining, LOCK_MS), share);
  }
  assert.equal(lockShare(5, 0), 0);
});

test("a place on the strip is an offset, also at and beyond its ends", () => {
  for (const [place, offset] of [[-0.1, 100], [0, 100], [0.009, 100], [0.011, 101], [0.999, 199], [1.2, 199]] as const) {
    assert.equal(offsetAt(place, BOUNDS), offset);
  }
  assert.equal(offsetAt(middleOf(150, BOUNDS), BOUNDS), 150);
});

test("one record among a million is still a pixel wide", () => {
  const [box] = boxesOf([range(500, 500)], { first: 0, last: 999_999 }, 1000, LOCK_MS);
  assert.equal(box?.width, 1);
});

test("a zoom keeps the offset at its place, and stays inside the bounds", () => {
  assert.deepEqual(zoomed(BOUNDS, 150, 0.5, BOUNDS), { first: 125, last: 174 });
  assert.deepEqual(zoomed(BOUNDS, 100, 0.5, BOUNDS), { first: 100, last: 149 });
  assert.deepEqual(zoomed({ first: 150, last: 199 }, 199, 4, BOUNDS), BOUNDS);
});

test("a zoom ends at the fewest offsets", () => {
  let window = BOUNDS;
  for (let step = 0; step < 10; step++) window = zoomed(window, 180, 0.5, BOUNDS);
  assert.equal(size(window), OFFSETS_MIN);
  assert.ok(window.first <= 180 && 180 <= window.last);
});

test("the window moves only as far as necessary to show an offset", () => {
  const window = { first: 120, last: 139 };
  assert.equal(showing(window, 130, BOUNDS), window);
  assert.deepEqual(showing(window, 110, BOUNDS), { first: 110, last: 129 });
  assert.deepEqual(showing(window, 199, BOUNDS), { first: 180, last: 199 });
});

test("a drag shows the offsets between its ends, in both directions, and not too few", () => {
  assert.deepEqual(spanned(120, 149, BOUNDS), { first: 120, last: 149 });
  assert.deepEqual(spanned(149, 120, BOUNDS), { first: 120, last: 149 });
  assert.deepEqual(spanned(198, 199, BOUNDS), { first: 192, last: 199 });
});

test("a zoom moves with the start offset, and ends when it shows all", () => {
  const window = { first: 110, last: 129 };
  assert.deepEqual(kept(window, BOUNDS), window);
  assert.deepEqual(kept(window, { first: 120, last: 220 }), { first: 120, last: 139 });
  assert.deepEqual(kept(window, { first: 500, last: 600 }), { first: 500, last: 519 });
  assert.equal(kept(window, { first: 115, last: 130 }), null);
  assert.equal(kept(null, BOUNDS), null);
});

test("the range of an offset is found, and none between two ranges", () => {
  for (const [offset, expected] of [[100, 0], [149, 0], [150, 1], [199, 2]] as const) {
    assert.equal(rangeAt(RANGES, offset), RANGES[expected]);
  }
  for (const offset of [99, 155, 200]) assert.equal(rangeAt(RANGES, offset), null);
  assert.equal(rangeAt([], 5), null);
});
