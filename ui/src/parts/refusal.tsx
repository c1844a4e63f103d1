/** In place of the report: what is the matter and what to do about it. */
export function Refusal({ heading, advice }: { heading: string; advice: string }) {
  return (
    <main class="refusal">
      <div role="alert">
        <h1>{heading}</h1>
        <p>{advice}</p>
      </div>
    </main>
  );
}
