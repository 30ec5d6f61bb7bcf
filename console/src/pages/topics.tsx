/** All topics. */

import { useState } from "preact/hooks";

import { firstPage, type Topic } from "../api";
import { count } from "../format";
import { Empty, PageHead, WhenLoaded } from "../parts/notices";
import { Table } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";

interface TopicsAnswer {
  topics: Topic[];
  next_cursor: string | null;
}

export function TopicsPage() {
  const loaded = usePolled("topics", (signal) => firstPage<TopicsAnswer>("/topics", signal));
  const [withInternal, setWithInternal] = useState(false);
  return (
    <>
      <PageHead crumbs={[]} title="Topics">
        <label class="check">
          <input
            type="checkbox"
            checked={withInternal}
            onChange={(event) => setWithInternal(event.currentTarget.checked)}
          />
          Internal topics
        </label>
      </PageHead>
      <WhenLoaded loaded={loaded}>
        {(answer) => <Topics answer={answer} withInternal={withInternal} />}
      </WhenLoaded>
    </>
  );
}

function Topics({ answer, withInternal }: { answer: TopicsAnswer; withInternal: boolean }) {
  const topics = answer.topics.filter((topic) => withInternal || !topic.is_internal);
  if (topics.length === 0) {
    return (
      <Empty title="There are no topics yet">
        A producer creates one when it sends its first record, or <code>kafka-topics --create</code> does.
      </Empty>
    );
  }
  return (
    <>
      <Table<Topic>
        caption="Topics"
        rows={topics}
        keyOf={(topic) => topic.name}
        columns={[
          { title: "Topic", isHead: true, cell: (topic) => <a href={links.topic(topic.name)}>{topic.name}</a> },
          { title: "Partitions", isNumber: true, cell: (topic) => count(topic.partition_count) },
        ]}
      />
      {answer.next_cursor !== null && <p class="quiet">The first {answer.topics.length} topics are shown.</p>}
    </>
  );
}
