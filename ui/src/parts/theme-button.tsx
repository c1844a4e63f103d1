import { chooseTheme, nextTheme, useDisplay } from "../display.ts";

export function ThemeButton() {
  const { choice } = useDisplay();
  const next = nextTheme(choice);
  return (
    <button
      type="button"
      class="button theme-button"
      aria-label={`Colours: ${choice}. Change to ${next}`}
      onClick={() => {
        chooseTheme(next);
      }}
    >
      Colours: {choice}
    </button>
  );
}
