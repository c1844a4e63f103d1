import { count } from "../format/number.ts";
import { NO_FILTER, type Filter } from "./filter.ts";

interface Props {
  filter: Filter;
  tags: readonly string[];
  statuses: readonly string[];
  found: number;
  of: number;
  onChange: (filter: Filter) => void;
}

function Choice({ name, any, value, values, onChange }: { name: string; any: string; value: string; values: readonly string[]; onChange: (value: string) => void }) {
  return (
    <label class="field">
      <span>{name}</span>
      <select value={value} onChange={(event) => { onChange(event.currentTarget.value); }}>
        <option value="">{any}</option>
        {/* An address may ask for what no experiment has. */}
        {[...new Set([...values, ...(value === "" ? [] : [value])])].map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

export function FilterBar({ filter, tags, statuses, found, of, onChange }: Props) {
  const isAny = Object.values(filter).some((value) => value !== "");
  return (
    <form class="filter-bar" role="search" onSubmit={(event) => { event.preventDefault(); }}>
      <label class="field field-wide">
        <span>Search</span>
        <input type="search" value={filter.words} placeholder="Name, question, answer, target, tag, note" onInput={(event) => { onChange({ ...filter, words: event.currentTarget.value }); }} />
      </label>
      <Choice name="Status" any="any" value={filter.status} values={statuses} onChange={(status) => { onChange({ ...filter, status }); }} />
      <Choice name="Tag" any="any" value={filter.tag} values={tags} onChange={(tag) => { onChange({ ...filter, tag }); }} />
      <label class="field">
        <span>Since</span>
        <input type="date" value={filter.since} onInput={(event) => { onChange({ ...filter, since: event.currentTarget.value }); }} />
      </label>
      <p class="filter-found" role="status">
        {isAny ? `${count(found)} of ${count(of)}` : count(of)}
        {isAny ? (
          <button type="button" class="button" onClick={() => { onChange(NO_FILTER); }}>
            Show all
          </button>
        ) : null}
      </p>
    </form>
  );
}
