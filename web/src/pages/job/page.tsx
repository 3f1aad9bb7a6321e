// A job: its head, and one of its parts.
import { useEffect } from "preact/hooks";
import { useKeys } from "../../keys";
import { Failure } from "../../parts/failure";
import { Page } from "../../parts/page";
import { SkeletonRows } from "../../parts/skeleton";
import { chosenTab, Tabs, type Tab } from "../../parts/tabs";
import { choose, go } from "../../router";
import { newest, useJob } from "../../store/job";
import { words } from "../../words";
import { Actions } from "./actions";
import { Events } from "./events";
import { File } from "./file";
import { Head } from "./head";
import { Logs } from "./logs";
import { Ranks } from "./ranks";
import { Summary } from "./summary";

export default function JobPage({ job: name = "" }: Record<string, string>) {
  const watched = useJob(name);
  const job = watched.view.value;
  useKeys([{ keys: "l", does: words.job.logs, run: () => choose({ tab: "logs" }) }]);
  useEffect(() => {
    if (job && job.id !== name) go(`/jobs/${job.id}${location.search}`, true); // a name may go to a newer job
  }, [job?.id]);
  if (!job) {
    return (
      <Page title={words.job.title}>
        {watched.failed.value ? <Failure text={watched.failed.value} again={watched.again} /> : <SkeletonRows />}
      </Page>
    );
  }
  const tabs: Tab[] = [
    { key: "summary", title: words.job.summary },
    { key: "logs", title: words.job.logs },
    { key: "ranks", title: words.job.ranks },
    { key: "events", title: words.job.events },
    { key: "file", title: words.job.file },
  ];
  const ranks = newest(job)?.executions.length;
  if (ranks) tabs[2]!.number = ranks;
  const tab = chosenTab(tabs);
  const title = job.spec.name ?? job.id;
  return (
    <Page title={title} head={<Head job={job} />} actions={<Actions job={job} take={watched.take} />} fills>
      <Tabs tabs={tabs} label={words.job.tabs} path={`/jobs/${job.id}`} />
      {tab === "summary" && <Summary job={job} />}
      {tab === "logs" && <Logs job={job} />}
      {tab === "ranks" && <Ranks job={job} />}
      {tab === "events" && <Events job={job} />}
      {tab === "file" && <File job={job} />}
    </Page>
  );
}
