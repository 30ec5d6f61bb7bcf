import assert from "node:assert/strict";
import { test } from "node:test";

import type { RecordRange } from "../src/api";
import { boxesOf, OFFSETS_MIN, rangeAt, showing, size, zoomed } from "../src/strip_layout";

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

test("a box has the place and the width of its offsets", () => {
  assert.deepEqual(boxesOf(RANGES, BOUNDS, 1000), [
    { x: 0, width: 500, state: "acquired" },
    { x: 500, width: 10, state: "waiting" },
    { x: 600, width: 400, state: "archived" },
  ]);
});

test("a box is cut at the ends of the window, and one outside is left out", () => {
  assert.deepEqual(boxesOf(RANGES, { first: 140, last: 159 }, 200), [
    { x: 0, width: 100, state: "acquired" },
    { x: 100, width: 10, state: "waiting" },
  ]);
});

test("one record among a million is still a pixel wide", () => {
  const [box] = boxesOf([range(500, 500)], { first: 0, last: 999_999 }, 1000);
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

test("the range of an offset is found, and none between two ranges", () => {
  for (const [offset, expected] of [[100, 0], [149, 0], [150, 1], [199, 2]] as const) {
    assert.equal(rangeAt(RANGES, offset), RANGES[expected]);
  }
  for (const offset of [99, 155, 200]) assert.equal(rangeAt(RANGES, offset), null);
  assert.equal(rangeAt([], 5), null);
});
