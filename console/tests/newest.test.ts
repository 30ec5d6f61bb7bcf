import assert from "node:assert/strict";
import { test } from "node:test";

import { Newest } from "../src/newest";

test("only the request that began last is the newest", () => {
  const requests = new Newest();
  const isFirstNewest = requests.begin();
  assert.equal(isFirstNewest(), true);
  const isSecondNewest = requests.begin();
  assert.deepEqual([isFirstNewest(), isSecondNewest()], [false, true]);
});

test("no request is the newest after the end, until another begins", () => {
  const requests = new Newest();
  const isFirstNewest = requests.begin();
  requests.end();
  assert.equal(isFirstNewest(), false);
  assert.equal(requests.begin()(), true);
  assert.equal(isFirstNewest(), false);
});
