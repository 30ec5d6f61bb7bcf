import assert from "node:assert/strict";
import { test } from "node:test";

import { age, ago, count, counted, duration, exactTime, isoTime, offsets, rate, seconds } from "../src/format";

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

test("a duration has its largest unit only", () => {
  assert.equal(duration(null), "–");
  assert.equal(duration(0), "0 s");
  assert.equal(duration(59_999), "59 s");
  assert.equal(duration(60_000), "1 min");
  assert.equal(duration(3_600_000 - 1), "59 min");
  assert.equal(duration(5 * 3_600_000), "5 h");
  assert.equal(duration(86_400_000), "1 d");
  assert.equal(duration(1_500 * 86_400_000), "1,500 d");
});

test("the age of a record is never negative", () => {
  assert.equal(age(null, 5_000), "–");
  assert.equal(age(5_000, 66_000), "1 min");
  assert.equal(age(66_000, 5_000), "0 s");
});

test("times are relative, with the exact one beside", () => {
  const now = Date.UTC(2030, 0, 2, 12);
  assert.equal(ago(now - 5_000, now), "5 seconds ago");
  assert.equal(ago(now - 180_000, now), "3 minutes ago");
  assert.equal(ago(now - 7_200_000, now), "2 hours ago");
  assert.equal(ago(now - 86_400_000, now), "yesterday");
  assert.equal(exactTime(now), "2030-01-02 12:00:00.000 UTC");
});

test("a time that is no date is shown in milliseconds", () => {
  assert.equal(isoTime(8.64e15), "+275760-09-13T00:00:00.000Z");
  for (const [timestampMs, shown] of [
    [8.64e15 + 1, "8640000000000001 ms"],
    [-8.64e15 - 1, "-8640000000000001 ms"],
    [2 ** 63, "9223372036854776000 ms"],
  ] as const) {
    assert.equal(isoTime(timestampMs), null);
    assert.equal(exactTime(timestampMs), shown);
  }
});
