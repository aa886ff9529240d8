export type Theme = 'system' | 'light' | 'dark'

const KEY = 'plat-theme'

/** The theme that the person chose in this browser. */
export function chosenTheme(): Theme {
  try {
    const stored = window.localStorage.getItem(KEY)
    return stored === 'light' || stored === 'dark' ? stored : 'system'
  } catch {
    return 'system'
  }
}

/** Stores and applies a theme. */
export function chooseTheme(theme: Theme): void {
  try {
    window.localStorage.setItem(KEY, theme)
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  applyTheme(theme)
}

/** Applies the theme: the style sheet has both, and follows the system without a choice. */
export function applyTheme(theme: Theme = chosenTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}
