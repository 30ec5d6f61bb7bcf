/** The history of one record in a share group. */

import { useState } from "preact/hooks";

import { get, recordsPath, type PastChange, type RecordHistory, type SharePartition } from "../api";
import { count, seconds } from "../format";
import { RangeActions, useActions } from "../parts/actions";
import { Empty, Figure, PageHead, Time, WhenLoaded } from "../parts/notices";
import { StateOf } from "../parts/state";
import { Table } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";

/** One page of a history, from a control record on, or the newest. */
function pathOf(place: SharePartition, offset: number, cursor: string): string {
  return `${recordsPath(place)}/${offset}/history?limit=100&cursor=${cursor}`;
}

export function RecordPage({ place, offset }: { place: SharePartition; offset: number }) {
  const [cursor, setCursor] = useState("");
  const loaded = usePolled(`record ${offset} ${cursor}`, (signal) =>
    get<RecordHistory>(pathOf(place, offset, cursor), signal),
  );
  const { ask, element } = useActions();
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
        {loaded.value !== null && <StateOf range={loaded.value.record} />}
      </PageHead>
      {element}
      <WhenLoaded loaded={loaded}>
        {(history) => (
          <>
            <Present history={history} />
            <RangeActions place={place} range={history.record} ask={ask} />
            <section>
              <h2>History</h2>
              <Changes history={history} />
              <Pages cursor={cursor} next={history.next_cursor} setCursor={setCursor} />
            </section>
          </>
        )}
      </WhenLoaded>
    </>
  );
}

function Present({ history }: { history: RecordHistory }) {
  const { record } = history;
  return (
    <dl class="figures">
      <Figure label="Deliveries" value={count(record.delivery_count)} />
      {record.holder !== null && (
        <Figure label="Held by" value={record.holder.member_id} hint={record.holder.client_id ?? "has left the group"} />
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
          { title: "State", cell: (change) => <StateOf range={{ state: change.state, wait: null }} /> },
          { title: "Cause", cell: (change) => change.cause },
          { title: "Deliveries", isNumber: true, cell: (change) => count(change.delivery_count) },
          { title: "Member", cell: (change) => (change.member_id === null ? "" : <code>{change.member_id}</code>) },
          { title: "Control record", isNumber: true, cell: (change) => count(change.control_offset) },
        ]}
      />
      {history.next_cursor === null && !history.is_complete && (
        <p class="quiet">Older changes may have been cleaned away.</p>
      )}
    </>
  );
}

function Pages({ cursor, next, setCursor }: {
  cursor: string;
  next: string | null;
  setCursor: (cursor: string) => void;
}) {
  if (cursor === "" && next === null) return null;
  return (
    <p class="buttons">
      <button type="button" disabled={cursor === ""} onClick={() => setCursor("")}>
        Newest changes
      </button>
      <button type="button" disabled={next === null} onClick={() => setCursor(next ?? "")}>
        Older changes
      </button>
    </p>
  );
}
