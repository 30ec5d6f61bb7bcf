/** The history of one record in a share group. */

import { useState } from "preact/hooks";

import { get, recordsPath, type PastChange, type RecordHistory, type SharePartition } from "../api";
import { count, exactTime, seconds } from "../format";
import { RangeActions } from "../parts/actions";
import { CursorPages } from "../parts/cursor_pages";
import { Empty, Figure, PageHead, Time, WhenLoaded } from "../parts/notices";
import { StateOf } from "../parts/state";
import { Table } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";
import { DELIVERIES, STATE } from "./range_columns";

/** The broker looks at a bounded number of control records for each page, so pages may be empty. */
const REQUESTS_MAX = 20;

/** The first page with changes, from a control record on, or from the newest one. */
async function load(place: SharePartition, offset: number, begin: string, signal: AbortSignal): Promise<RecordHistory> {
  let cursor = begin;
  for (let request = 1; ; request++) {
    const path = `${recordsPath(place)}/${offset}/history?limit=100&cursor=${cursor}`;
    const page = await get<RecordHistory>(path, signal);
    if (page.changes.length > 0 || page.next_cursor === null || request === REQUESTS_MAX) return page;
    cursor = page.next_cursor;
  }
}

export function RecordPage({ place, offset }: { place: SharePartition; offset: number }) {
  const page = useState("");
  const [cursor] = page;
  const loaded = usePolled(`record ${offset} ${cursor}`, (signal) =>
    load(place, offset, cursor, signal),
  );
  return (
    <>
      <PageHead
        crumbs={[
          { text: "Groups", href: links.groups() },
          { text: place.group, href: links.group(place.group) },
          { text: `${place.topic} ${place.partition}`, href: links.sharePartition(place) },
        ]}
        title={`Record ${count(offset)}`}
      >
        {loaded.value !== null && (
          <>
            <StateOf range={loaded.value.record} />
            <span class="end">
              <RangeActions place={place} range={loaded.value.record} done={loaded.again} />
            </span>
          </>
        )}
      </PageHead>
      <WhenLoaded loaded={loaded}>
        {(history) => (
          <>
            <Present history={history} />
            <section>
              <h2>History</h2>
              <Changes history={history} />
              <CursorPages page={page} next={history.next_cursor} first="Newest changes" further="Older changes" />
            </section>
          </>
        )}
      </WhenLoaded>
    </>
  );
}

function Present({ history }: { history: RecordHistory }) {
  const { record } = history;
  if (record.state === "passed") {
    return <p class="quiet">The group has finished the record: its start offset has passed it.</p>;
  }
  return (
    <dl class="figures">
      {record.delivery_count !== null && <Figure label="Deliveries" value={count(record.delivery_count)} />}
      {record.holder !== null && (
        <Figure label="Held by" value={record.holder.member_id} hint={record.holder.client_id ?? "has left the group"} />
      )}
      {record.holder !== null && (
        <Figure
          label="Held since"
          value={<Time timestampMs={record.holder.acquired_ms} />}
          hint={exactTime(record.holder.acquired_ms)}
        />
      )}
      {record.holder !== null && <Figure label="Lock ends in" value={seconds(record.holder.lock_remaining_ms)} />}
      {record.wait !== null && <Figure label="Waits for" value={record.wait} />}
    </dl>
  );
}

function Changes({ history }: { history: RecordHistory }) {
  if (history.source === "none") {
    return (
      <Empty title="This broker keeps no history">
        With <code>share.state.store=log</code> every change of a record is in the log.
      </Empty>
    );
  }
  if (history.changes.length === 0) {
    return (
      <Empty title="No change of the record is on this page">
        A delivery is not recorded, only its end. {history.next_cursor !== null && "Older changes may follow."}
      </Empty>
    );
  }
  return (
    <>
      <Table<PastChange>
        caption="Changes, newest first"
        rows={history.changes}
        keyOf={(change) => change.control_offset}
        columns={[
          { title: "Time", isHead: true, cell: (change) => <Time timestampMs={change.timestamp_ms} /> },
          STATE,
          { title: "Cause", cell: (change) => change.cause },
          DELIVERIES,
          { title: "From", cell: (change) => (change.member_id === null ? "" : <code>{change.member_id}</code>) },
          { title: "Control record", isNumber: true, cell: (change) => count(change.control_offset) },
        ]}
      />
      {history.next_cursor === null && !history.is_complete && (
        <p class="quiet">Older changes may have been cleaned away.</p>
      )}
    </>
  );
}
