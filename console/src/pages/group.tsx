/** One group: its members, and for a share group its progress in each partition, with lag and rates. */

import { useEffect, useRef, useState } from "preact/hooks";

import {
  get,
  groupPath,
  list,
  LIST_ENTRIES_MAX,
  shareGroupPath,
  type Group,
  type List,
  type Member,
  type Progress,
} from "../api";
import { groupDeletion } from "../changes";
import { age, count, counted, rate } from "../format";
import { ChangeButton } from "../parts/actions";
import { Chart } from "../parts/chart";
import { Cut, Empty, Figure, PageHead, WhenLoaded } from "../parts/notices";
import { GroupState } from "../parts/state";
import { Table, type Column } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";
import { EMPTY, extended, rates, type Totals } from "../series";

interface GroupNow {
  group: Group;
  members: List<Member>;
  /** Null for a group that is not a share group. */
  partitions: List<Progress> | null;
}

async function load(group: string, signal: AbortSignal): Promise<GroupNow> {
  const shown = await get<Group>(groupPath(group), signal);
  const members = await list<Member>(`${groupPath(group)}/members`, "members", signal);
  const isShare = shown.type === "share";
  const partitions = isShare ? await list<Progress>(`${shareGroupPath(group)}/partitions`, "partitions", signal) : null;
  return { group: shown, members, partitions };
}

export function GroupPage({ group }: { group: string }) {
  const loaded = usePolled(`group ${group}`, (signal) => load(group, signal));
  return (
    <>
      <PageHead crumbs={[{ text: "Groups", href: links.groups() }]} title={group}>
        {loaded.value !== null && <Head now={loaded.value} />}
      </PageHead>
      <WhenLoaded loaded={loaded}>
        {(now) => (
          <>
            {now.partitions !== null && <ShareGroup group={group} list={now.partitions} />}
            <Members list={now.members} />
          </>
        )}
      </WhenLoaded>
    </>
  );
}

function Head({ now }: { now: GroupNow }) {
  const { group } = now;
  return (
    <>
      <span class="tag">{group.type}</span>
      <GroupState state={group.state} />
      <span class="end buttons">
        {now.partitions !== null && (
          <a class="button" href={links.stuck(group.group_id)}>
            Stuck records
          </a>
        )}
        <ChangeButton change={groupDeletion(group.group_id)} />
      </span>
    </>
  );
}

function sum(partitions: Progress[], value: (one: Progress) => number | null): number {
  return partitions.reduce((total, one) => total + Math.max(value(one) ?? 0, 0), 0);
}

/** The timestamp of the oldest record in all partitions; null if none is known. */
function oldest(partitions: Progress[]): number | null {
  const known = partitions.flatMap((one) => one.oldest_record_timestamp_ms ?? []);
  return known.length === 0 ? null : Math.min(...known);
}

function ShareGroup({ group, list: { entries: partitions, isCut } }: { group: string; list: List<Progress> }) {
  const { lag, flow, last } = useHistory(partitions);
  if (partitions.length === 0) {
    return (
      <Empty title="The group reads no partition yet">
        It begins when a member subscribes to a topic that exists. Check the name of the topic in the consumer.
      </Empty>
    );
  }
  return (
    <>
      <dl class="figures">
        <Figure label="Lag" value={count(sum(partitions, (one) => one.lag))} hint="records not final" />
        <Figure label="Oldest" value={age(oldest(partitions), Date.now())} hint="its age" />
        <Figure label="Locked" value={count(sum(partitions, (one) => one.locked_count))} hint="held by members" />
        <Figure label="Waiting" value={count(sum(partitions, (one) => one.waiting_count))} hint="released, not due" />
        <Figure label="Finished" value={rate(last)} hint="accepted or archived" />
      </dl>
      <div class="charts">
        <Chart title="Lag" unit="records" series={lag} lines={LAG_LINES} format={count} />
        <Chart title="Flow" unit="records per second" series={flow} lines={FLOW_LINES} format={rate} />
      </div>
      <section>
        <h2>Partitions</h2>
        <Partitions group={group} partitions={partitions} />
        <Cut isCut={isCut} text={`The first ${count(LIST_ENTRIES_MAX)} partitions are shown and summed up.`} />
      </section>
    </>
  );
}

const LAG_LINES = [
  { name: "lag", label: "lag", colour: "line-1" },
  { name: "locked", label: "locked", colour: "line-2", dash: [6, 4] },
];
const FLOW_LINES = [
  { name: "written", label: "written", colour: "line-1" },
  { name: "finished", label: "finished", colour: "line-2", dash: [6, 4] },
];

/** Lag and rates since the page was opened. */
function useHistory(partitions: Progress[]) {
  const [history, setHistory] = useState({ lag: EMPTY, flow: EMPTY, last: null as number | null });
  const before = useRef<Totals | null>(null);
  useEffect(() => {
    const time = Date.now() / 1000;
    const totals = {
      written: sum(partitions, (one) => one.high_watermark),
      finished: sum(partitions, (one) => one.start_offset),
    };
    const found = rates(before.current, { time, totals });
    before.current = { time, totals };
    const lag = { lag: sum(partitions, (one) => one.lag), locked: sum(partitions, (one) => one.locked_count) };
    setHistory((last) => ({
      lag: extended(last.lag, time, lag),
      flow: extended(last.flow, time, found),
      last: found["finished"] ?? null,
    }));
  }, [partitions]);
  return history;
}

const ERROR: Column<Progress> = { title: "Error", cell: (one) => one.error };

function Partitions({ group, partitions }: { group: string; partitions: Progress[] }) {
  return (
    <Table<Progress>
      caption="Partitions"
      rows={partitions}
      keyOf={(one) => `${one.topic} ${one.partition}`}
      columns={[
        {
          title: "Partition",
          isHead: true,
          cell: ({ topic, partition }) => (
            <a href={links.sharePartition({ group, topic, partition })}>
              {topic} {partition}
            </a>
          ),
        },
        { title: "Start offset", isNumber: true, cell: (one) => count(one.start_offset) },
        { title: "End offset", isNumber: true, cell: (one) => count(one.end_offset) },
        { title: "Lag", isNumber: true, cell: (one) => count(one.lag) },
        { title: "Oldest", isNumber: true, cell: (one) => age(one.oldest_record_timestamp_ms, Date.now()) },
        { title: "Locked", isNumber: true, cell: (one) => count(one.locked_count) },
        { title: "Waiting", isNumber: true, cell: (one) => count(one.waiting_count) },
        ...(partitions.some((one) => one.error !== null) ? [ERROR] : []),
      ]}
    />
  );
}

function Members({ list: { entries: members, isCut } }: { list: List<Member> }) {
  return (
    <section>
      <h2>Members</h2>
      {members.length === 0 ? (
        <Empty title="The group has no members">The broker keeps its state. Start a consumer to go on.</Empty>
      ) : (
        <Table<Member>
          caption="Members"
          rows={members}
          keyOf={(member) => member.member_id}
          columns={[
            { title: "Member", isHead: true, cell: (member) => <code>{member.member_id}</code> },
            { title: "Client", cell: (member) => member.client_id },
            { title: "Host", cell: (member) => member.client_host.replace(/^\//, "") },
            { title: "Partitions", cell: (member) => assignmentOf(member) },
          ]}
        />
      )}
      <Cut isCut={isCut} text={`The first ${count(LIST_ENTRIES_MAX)} members are shown.`} />
    </section>
  );
}

function assignmentOf(member: Member): string {
  if (member.assignment === null) return "known to its members only";
  if (member.assignment.length === 0) return "none";
  return member.assignment
    .map((one) =>
      one.partitions.length > 8
        ? `${one.topic}: ${counted(one.partitions.length, "partition")}`
        : `${one.topic} ${one.partitions.join(", ")}`,
    )
    .join("; ");
}
