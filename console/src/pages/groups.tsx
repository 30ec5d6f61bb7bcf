/** All groups. */

import { firstPage, type Group } from "../api";
import { Empty, PageHead, WhenLoaded } from "../parts/notices";
import { Table } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";

interface GroupsAnswer {
  groups: Group[];
  next_cursor: string | null;
}

export function GroupsPage() {
  const loaded = usePolled("groups", (signal) => firstPage<GroupsAnswer>("/groups", signal));
  return (
    <>
      <PageHead crumbs={[]} title="Groups" />
      <WhenLoaded loaded={loaded}>{(answer) => <Groups answer={answer} />}</WhenLoaded>
    </>
  );
}

function Groups({ answer }: { answer: GroupsAnswer }) {
  if (answer.groups.length === 0) {
    return (
      <Empty title="There are no groups yet">
        Start a consumer with a <code>group.id</code>. It appears here within seconds.
      </Empty>
    );
  }
  return (
    <>
      <Table<Group>
        caption="Groups"
        rows={answer.groups}
        keyOf={(group) => group.group_id}
        columns={[
          { title: "Group", isHead: true, cell: (group) => <a href={links.group(group.group_id)}>{group.group_id}</a> },
          { title: "Type", cell: (group) => group.type },
          { title: "State", cell: (group) => group.state },
        ]}
      />
      {answer.next_cursor !== null && <p class="quiet">The first {answer.groups.length} groups are shown.</p>}
    </>
  );
}
