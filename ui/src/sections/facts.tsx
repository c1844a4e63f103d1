import { shown } from "../format/json.ts";
import type { Fact } from "../model.ts";
import { Section } from "../parts/section.tsx";

const GROUPS: readonly { group: Fact["group"]; title: string }[] = [
  { group: "host", title: "Host" },
  { group: "server", title: "Server" },
  { group: "load", title: "Load" },
  { group: "sandbox", title: "Sandbox" },
];

function FactRow({ fact }: { fact: Fact }) {
  return (
    <div class="fact">
      <dt>{fact.name}</dt>
      <dd>
        {fact.value === null ? <em class="missing">missing: {fact.missing ?? "no reason is recorded"}</em> : <span class="fact-value">{shown(fact.value)}</span>}
        <span class="source">{fact.source}</span>
      </dd>
    </div>
  );
}

export function Facts({ facts }: { facts: readonly Fact[] }) {
  const groups = GROUPS.map(({ group, title }) => ({ title, facts: facts.filter((fact) => fact.group === group) })).filter((entry) => entry.facts.length > 0);
  return (
    <Section id="facts" lede="What was found, and where it was read.">
      {groups.length === 0 ? <p class="empty">No facts were recorded.</p> : null}
      <div class="fact-groups">
        {groups.map(({ title, facts: inGroup }) => (
          <div key={title} class="fact-group">
            <h3>{title}</h3>
            <dl>
              {inGroup.map((fact, place) => (
                <FactRow key={place} fact={fact} />
              ))}
            </dl>
          </div>
        ))}
      </div>
    </Section>
  );
}
