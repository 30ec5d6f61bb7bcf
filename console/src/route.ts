/** The pages as fragments of the address, so that the broker serves one document for all of them. */

import { useEffect, useState } from "preact/hooks";

import type { SharePartition } from "./api";

export type Route =
  | { page: "groups" }
  | { page: "group"; group: string }
  | { page: "stuck"; group: string | null }
  | { page: "share-partition"; place: SharePartition }
  | { page: "record"; place: SharePartition; offset: number }
  | { page: "topics" }
  | { page: "topic"; topic: string }
  | { page: "unknown" };

const part = encodeURIComponent;

export const links = {
  groups: () => "#/groups",
  group: (group: string) => `#/groups/${part(group)}`,
  stuck: (group: string | null) => (group === null ? "#/stuck" : `#/groups/${part(group)}/stuck`),
  sharePartition: ({ group, topic, partition }: SharePartition) =>
    `#/groups/${part(group)}/topics/${part(topic)}/${partition}`,
  record: (place: SharePartition, offset: number) => `${links.sharePartition(place)}/records/${offset}`,
  topics: () => "#/topics",
  topic: (topic: string) => `#/topics/${part(topic)}`,
};

export function parseRoute(fragment: string): Route {
  let parts: string[];
  try {
    parts = fragment.replace(/^#?\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return { page: "unknown" };
  }
  const [root, name, third] = parts;
  if (root === "" || (root === "groups" && name === undefined)) return { page: "groups" };
  if (root === "stuck" && name === undefined) return { page: "stuck", group: null };
  if (root === "topics" && name === undefined) return { page: "topics" };
  if (root === "topics" && name !== undefined && third === undefined) return { page: "topic", topic: name };
  if (root !== "groups" || name === undefined) return { page: "unknown" };
  if (third === undefined) return { page: "group", group: name };
  if (third === "stuck" && parts.length === 3) return { page: "stuck", group: name };
  return parseSharePartition(name, parts.slice(2));
}

function parseSharePartition(group: string, parts: string[]): Route {
  const [kind, topic, partition, records, offset] = parts;
  if (kind !== "topics" || topic === undefined || !isNumber(partition)) return { page: "unknown" };
  const place = { group, topic, partition: Number(partition) };
  if (parts.length === 3) return { page: "share-partition", place };
  if (records === "records" && isNumber(offset) && parts.length === 5) {
    return { page: "record", place, offset: Number(offset) };
  }
  return { page: "unknown" };
}

function isNumber(text: string | undefined): text is string {
  return text !== undefined && /^\d{1,15}$/.test(text);
}

/** The fragment of the address now. */
export function useFragment(): string {
  const [fragment, setFragment] = useState(location.hash);
  useEffect(() => {
    const follow = () => setFragment(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return fragment;
}
