import assert from "node:assert/strict";
import { test } from "node:test";

import { links, parseRoute } from "../src/route";

const NAME = "a/b #?%20 ü";

test("each link leads to its page, with any characters in the names", () => {
  const place = { group: NAME, topic: NAME, partition: 7 };
  assert.deepEqual(parseRoute(links.groups()), { page: "groups" });
  assert.deepEqual(parseRoute(links.group(NAME)), { page: "group", group: NAME });
  assert.deepEqual(parseRoute(links.stuck(NAME)), { page: "stuck", group: NAME });
  assert.deepEqual(parseRoute(links.stuck(null)), { page: "stuck", group: null });
  assert.deepEqual(parseRoute(links.sharePartition(place)), { page: "share-partition", place });
  assert.deepEqual(parseRoute(links.record(place, 12)), { page: "record", place, offset: 12 });
  assert.deepEqual(parseRoute(links.topics()), { page: "topics" });
  assert.deepEqual(parseRoute(links.topic(NAME)), { page: "topic", topic: NAME });
});

test("the first page is that of the groups", () => {
  for (const fragment of ["", "#", "#/"]) assert.deepEqual(parseRoute(fragment), { page: "groups" });
});

test("any other fragment is an unknown page", () => {
  for (const fragment of [
    "#/nothing",
    "#/stuck/more",
    "#/groups/g/other",
    "#/groups/g/stuck/more",
    "#/groups/g/topics/t/x",
    "#/groups/g/topics/t/1/records/-1",
    "#/groups/g/topics/t/1/records/1/2",
    "#/topics/t/more",
    "#/topics/%zz",
  ]) {
    assert.deepEqual(parseRoute(fragment), { page: "unknown" }, fragment);
  }
});
