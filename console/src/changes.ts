/** The changes that a person can ask for: their words, and their requests. */

import {
  changeRecords,
  groupPath,
  remove,
  topicPath,
  type ChangeOfRecords,
  type RecordRange,
  type SharePartition,
} from "./api";
import { counted, offsets } from "./format";
import { links } from "./route";

/** A change that waits for its confirmation. */
export interface Change {
  /** The verb on the buttons. */
  verb: string;
  /** The thing, for the heading of the dialog: it names what changes. */
  thing: string;
  effect: string;
  /** A name that must be typed, because nothing brings the thing back. */
  typedName: string | null;
  /** Makes the change, and tells the outcome. Throws RequestError. */
  send: (token: string) => Promise<string>;
  /** The page to go to afterwards, if this one is about a thing that is gone. */
  next: string | null;
}

/** The most offsets of one change (`ALTERED_OFFSETS_MAX`). */
const CHANGED_OFFSETS_MAX = 10_000;

export const VERBS: Record<ChangeOfRecords, string> = {
  release: "Release",
  archive: "Archive",
  "dead-letter": "Dead-letter",
};

const EFFECTS: Record<ChangeOfRecords, string> = {
  release: "The locks end, and other members can get the records immediately.",
  archive: "The records are never delivered to this group again.",
  "dead-letter": "The records go to the dead-letter topic of the group, and are never delivered to it again.",
};

/** The changes that the state of a range allows. */
export function changesOf(range: RecordRange): ChangeOfRecords[] {
  if (range.state === "acquired") return ["release", "archive", "dead-letter"];
  return range.state === "available" ? ["archive", "dead-letter"] : [];
}

/** The last offset of a range that one change reaches. */
export function lastChanged(range: RecordRange): number {
  return Math.min(range.last_offset, range.first_offset + CHANGED_OFFSETS_MAX - 1);
}

export function recordChange(place: SharePartition, range: RecordRange, change: ChangeOfRecords): Change {
  const first = range.first_offset;
  const last = lastChanged(range);
  const verb = VERBS[change];
  return {
    verb,
    thing: `${first === last ? "offset" : "offsets"} ${offsets(first, last)}`,
    effect: `Group ${place.group}, topic ${place.topic}, partition ${place.partition}. ${EFFECTS[change]}`,
    typedName: null,
    send: async (token) => {
      const changed = await changeRecords(place, change, first, last, token);
      return `${verb}: ${counted(changed, "record")} changed.`;
    },
    next: null,
  };
}

export function topicDeletion(topic: string): Change {
  return {
    verb: "Delete",
    thing: `topic ${topic}`,
    effect: "All its records are lost, and share groups lose their state in it.",
    typedName: topic,
    send: async (token) => {
      await remove(topicPath(topic), token);
      return `The topic ${topic} is deleted.`;
    },
    next: links.topics(),
  };
}

export function groupDeletion(group: string): Change {
  return {
    verb: "Delete",
    thing: `group ${group}`,
    effect: "Its offsets or share state are lost: a group of this name begins anew. The records of the topics stay.",
    typedName: group,
    send: async (token) => {
      await remove(groupPath(group), token);
      return `The group ${group} is deleted.`;
    },
    next: links.groups(),
  };
}
