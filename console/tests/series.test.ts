import assert from "node:assert/strict";
import { test } from "node:test";

import { EMPTY, extended, POINTS_MAX, rates } from "../src/series";

test("a chart keeps a bounded number of points", () => {
  let series = EMPTY;
  for (let time = 0; time < POINTS_MAX + 10; time++) series = extended(series, time, { lag: time });
  assert.equal(series.times.length, POINTS_MAX);
  assert.equal(series.times[0], 10);
  assert.deepEqual(series.values["lag"], series.times);
});

test("a value that begins later has a gap before", () => {
  const series = extended(extended(EMPTY, 1, { lag: 5 }), 2, { lag: 6, locked: 1 });
  assert.deepEqual(series.values, { lag: [5, 6], locked: [null, 1] });
});

test("a rate is the growth per second", () => {
  const before = { time: 10, totals: { written: 100 } };
  assert.deepEqual(rates(before, { time: 12, totals: { written: 150 } }), { written: 25 });
});

test("a rate is unknown at first, and after a total began anew", () => {
  const now = { time: 12, totals: { written: 50 } };
  assert.deepEqual(rates(null, now), { written: null });
  assert.deepEqual(rates({ time: 10, totals: { written: 100 } }, now), { written: null });
  assert.deepEqual(rates({ time: 12, totals: { written: 50 } }, now), { written: null });
});
