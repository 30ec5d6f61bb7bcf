import assert from "node:assert/strict";
import { test } from "node:test";

import { ago, count, counted, exactTime, offsets, rate, seconds } from "../src/format";

test("an unknown number is a dash", () => {
  for (const unknown of [null, undefined, -1]) assert.equal(count(unknown), "–");
  assert.equal(count(1_234_567), "1,234,567");
  assert.equal(rate(null), "–");
});

test("small rates have one decimal", () => {
  assert.equal(rate(0.25), "0.3/s");
  assert.equal(rate(1499.6), "1,500/s");
});

test("counts, offsets and durations are short", () => {
  assert.equal(counted(1, "record"), "1 record");
  assert.equal(counted(0, "record"), "0 records");
  assert.equal(offsets(5, 5), "5");
  assert.equal(offsets(1000, 2000), "1,000–2,000");
  assert.equal(seconds(1250), "1.3 s");
  assert.equal(seconds(61_000), "61 s");
});

test("times are relative, with the exact one beside", () => {
  const now = Date.UTC(2030, 0, 2, 12);
  assert.equal(ago(now - 5_000, now), "5 seconds ago");
  assert.equal(ago(now - 180_000, now), "3 minutes ago");
  assert.equal(ago(now - 7_200_000, now), "2 hours ago");
  assert.equal(ago(now - 86_400_000, now), "yesterday");
  assert.equal(exactTime(now), "2030-01-02 12:00:00.000 UTC");
});
